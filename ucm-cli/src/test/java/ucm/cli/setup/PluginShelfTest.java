package ucm.cli.setup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.cli.output.UsageException;
import ucm.cli.setup.PluginShelf.Plugin;
import ucm.cli.setup.PluginShelf.State;

/** Which plugins are there, and what enabling and disabling them leaves. */
class PluginShelfTest {

  @TempDir private Path root;

  private Path zips;
  private Path folder;
  private PluginShelf shelf;

  @BeforeEach
  void anImageWithOnePlugin() throws IOException {
    zips = Files.createDirectory(root.resolve("zips"));
    folder = Files.createDirectory(root.resolve("plugins"));
    Files.writeString(folder.resolve("README.txt"), "no plugin");
    zip("valkey", "store.jar", "client.jar");
    shelf = new PluginShelf(zips, folder);
  }

  private void zip(String name, String... entries) throws IOException {
    try (ZipOutputStream zip =
        new ZipOutputStream(Files.newOutputStream(zips.resolve(name + ".zip")))) {
      for (String entry : entries) {
        zip.putNextEntry(new ZipEntry(entry));
        zip.write(entry.getBytes());
      }
    }
  }

  private List<String> left() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void enablesAndDisables() throws IOException {
    assertThat(shelf.all()).extracting(Plugin::state).containsExactly(State.AVAILABLE);
    assertThat(shelf.enable("valkey").state()).isEqualTo(State.ENABLED);
    assertThat(folder.resolve("valkey/client.jar")).hasContent("client.jar");
    assertThat(folder.resolve("valkey/store.jar")).exists();
    assertThat(left()).containsExactly("README.txt", "valkey");
    assertThat(shelf.disable("valkey").state()).isEqualTo(State.AVAILABLE);
    assertThat(shelf.disable("valkey").state()).as("once more").isEqualTo(State.AVAILABLE);
    assertThat(left()).containsExactly("README.txt");
  }

  @Test
  void putsThisVersionInThePlaceOfAnother() throws IOException {
    shelf.enable("valkey");
    Files.move(folder.resolve("valkey/client.jar"), folder.resolve("valkey/client-0.9.jar"));
    assertThat(shelf.all()).extracting(Plugin::state).containsExactly(State.OTHER_VERSION);
    assertThat(shelf.enable("valkey").state()).isEqualTo(State.ENABLED);
    assertThat(folder.resolve("valkey/client-0.9.jar")).doesNotExist();
    assertThat(left()).containsExactly("README.txt", "valkey");
  }

  @Test
  void leavesWhatIsNotOfTheImage() throws IOException {
    Files.createFile(folder.resolve("mine.jar"));
    assertThat(shelf.all())
        .extracting(Plugin::name, Plugin::state)
        .containsExactly(tuple("valkey", State.AVAILABLE), tuple("mine.jar", State.OWN));
    assertThatThrownBy(() -> shelf.disable("mine.jar"))
        .isInstanceOf(UsageException.class)
        .hasMessageContaining("mine.jar is not of this image");
    assertThat(folder.resolve("mine.jar")).exists();
    for (String name : List.of("nope", "", "..", "../zips/valkey")) {
      assertThatThrownBy(() -> shelf.enable(name))
          .isInstanceOf(UsageException.class)
          .hasMessageContaining("brings no plugin \"" + name + "\"", "valkey");
      assertThatThrownBy(() -> shelf.disable(name)).isInstanceOf(UsageException.class);
    }
    assertThat(zips.resolve("valkey.zip")).exists();
  }

  @Test
  void unpacksAllOrNothing() throws IOException {
    zip("bad", "store.jar", "../outside.jar");
    assertThatThrownBy(() -> shelf.enable("bad"))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("../outside.jar");
    assertThat(left()).containsExactly("README.txt");
    Files.writeString(zips.resolve("bad.zip"), "no zip");
    assertThatThrownBy(() -> shelf.enable("bad")).isInstanceOf(UncheckedIOException.class);
    assertThat(left()).containsExactly("README.txt");
    assertThat(root.resolve("outside.jar")).doesNotExist();
  }
}

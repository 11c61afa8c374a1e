package ucm.bench.measure;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class DiscardedFilesTest {

  @TempDir private Path folder;

  @Test
  void cutsLargeFilesAndLeavesTheOthers() throws Exception {
    Path large = write("a/b/large", 4096);
    Path larger = write("a/larger", 5000);
    Path small = write("a/small", 4095);
    Path elsewhere = write("c/elsewhere", 8192);
    Path link = Files.createSymbolicLink(folder.resolve("a/link"), elsewhere);
    DiscardedFiles.cut(folder.resolve("a"), 4096);
    assertThat(large).isEmptyFile();
    assertThat(larger).isEmptyFile();
    assertThat(small).hasSize(4095);
    assertThat(link).exists();
    assertThat(elsewhere).hasSize(8192);
  }

  @Test
  void aFolderThatIsNotThereIsNoFault() throws Exception {
    DiscardedFiles.cut(folder.resolve("absent"), 1);
    assertThat(folder).isEmptyDirectory();
  }

  private Path write(String name, int bytes) throws Exception {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.write(file, new byte[bytes]);
  }
}

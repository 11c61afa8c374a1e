package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.StoreException;

class GenerationsTest {

  @TempDir Path folder;

  private List<Path> directories(String... names) {
    return Stream.of(names).map(folder::resolve).toList();
  }

  @Test
  void aProcessThatComesLaterKnowsTheLatestOneOfAModel() {
    List<Path> two = directories("a", "b");
    assertThat(new Generations().current(two, "model")).isEmpty();
    new Generations().advance(two, "model");
    String first = new Generations().current(two, "model");
    assertThat(first).isNotEmpty();
    assertThat(new Generations().current(two, "other model")).isEmpty();
    new Generations().advance(two, "model");
    assertThat(new Generations().current(two, "model")).isNotEmpty().isNotEqualTo(first);
  }

  @Test
  void oneOfTheDirectoriesIsEnough() throws IOException {
    Generations generations = new Generations();
    generations.advance(directories("a", "b"), "model");
    String first = new Generations().current(directories("a", "b"), "model");
    generations.advance(directories("b"), "model");
    String second = new Generations().current(directories("b"), "model");
    assertThat(new Generations().current(directories("a"), "model")).isEqualTo(first);
    // Whichever comes first, and when one is in the way of the other.
    assertThat(new Generations().current(directories("a", "b"), "model")).isEqualTo(second);
    assertThat(new Generations().current(directories("b", "a"), "model")).isEqualTo(second);
    Files.writeString(folder.resolve("file"), "");
    generations.advance(directories("file", "a"), "model");
    assertThat(new Generations().current(directories("a"), "model")).isNotEqualTo(first);
    try (Stream<Path> left = Files.list(folder.resolve("a").resolve(Generations.FOLDER))) {
      assertThat(left).as("temporary files are removed").hasSize(1);
    }
  }

  @Test
  void blocksThatAreInNoDirectoryAreDisownedAsLongAsTheProcessLives() {
    Generations generations = new Generations();
    generations.advance(List.of(), "model");
    assertThat(generations.current(List.of(), "model")).isNotEmpty();
    assertThat(new Generations().current(List.of(), "model")).isEmpty();
  }

  @Test
  void whatCannotBeReadOrWrittenIsSaid() throws IOException {
    Generations generations = new Generations();
    generations.advance(directories("a"), "model");
    Path own = folder.resolve("a").resolve(Generations.FOLDER);
    try (Stream<Path> files = Files.list(own)) {
      Files.writeString(files.findFirst().orElseThrow(), "torn");
    }
    assertThatThrownBy(() -> new Generations().current(directories("a"), "model"))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cannot be read");
    Files.writeString(folder.resolve("file"), "");
    assertThatThrownBy(() -> generations.advance(directories("file"), "model"))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cannot be written");
    assertThat(generations.current(List.of(), "model")).isEmpty();
  }
}

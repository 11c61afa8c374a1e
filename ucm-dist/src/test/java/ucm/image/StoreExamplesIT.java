package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.api.io.TempDir;

/** docs/plugins.md, followed by an author of stores with the image; it leads to the example. */
class StoreExamplesIT {

  private static final String PAGE = "docs/plugins.md";

  @TempDir private static Path folder;

  private static Path image;
  private static Map<String, String> environment;

  private DocsReader author;

  @BeforeAll
  static void publishes() throws IOException {
    PublishedArtifacts artifacts = PublishedArtifacts.in(folder.resolve("repository"));
    image = folder.resolve("image");
    FileTree.copy(UcmProcess.IMAGE, image);
    Path checkout = folder.resolve("checkout");
    PublishedArtifacts.copyExample("ucm-store-hello", checkout.resolve("examples/ucm-store-hello"));
    environment =
        Map.of(
            "PATH", artifacts.maven(folder.resolve("maven")).toString(),
            "UCM", checkout.toString(),
            "IMAGE", image.toString());
  }

  @BeforeEach
  void anAuthorSitsDown(TestInfo test) throws IOException {
    author =
        new DocsReader(
            folder.resolve(test.getTestMethod().orElseThrow().getName()), image, environment);
  }

  @Test
  void fromAnEmptyFolderToAStoreInTheImage() throws IOException {
    StringBuilder printed = new StringBuilder();
    for (DocsBlock block : DocsBlock.of(PAGE)) {
      printed.append(author.follow(block));
    }
    assertThat(printed.toString())
        .containsPattern("Tests run: \\d{3}, Failures: 0, Errors: 0")
        .containsPattern("Hello +ucm.example.hello")
        .contains("hello_directory", "Threads that read and write files.")
        .contains("pipeline Cache|Hello", "Round 2 found 10 of 10 blocks of each prompt");
    assertThat(sources(author.workingDirectory()))
        .as("what the page ends with")
        .isEqualTo(sources(Path.of("../examples/ucm-store-hello")));
  }

  private static Map<String, String> sources(Path project) throws IOException {
    Map<String, String> sources = new TreeMap<>();
    sources.put("pom.xml", Files.readString(project.resolve("pom.xml")));
    try (Stream<Path> files = Files.walk(project.resolve("src"))) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        sources.put(project.relativize(file).toString(), Files.readString(file));
      }
    }
    return sources;
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The tests that docs/reliability.md names as proofs are there. */
class ReliabilityDocsTest {

  private static final Pattern NAMED =
      Pattern.compile("`(\\w+(?:Test|IT|Contract))(?:\\.(\\w+))?`");
  private static final int AT_LEAST = 50;

  @Test
  void everyProofThatIsNamedExists() throws IOException {
    Path root = Path.of("..");
    Map<String, String> sources = sources(root);
    String page = Files.readString(root.resolve("docs").resolve("reliability.md"));
    int named = 0;
    for (MatchResult proof : NAMED.matcher(page).results().toList()) {
      named++;
      String source =
          Objects.requireNonNull(sources.get(proof.group(1)), "no class of " + proof.group());
      if (proof.group(2) != null) {
        assertThat(source)
            .as("the method of %s", proof.group())
            .containsPattern("\\bvoid " + proof.group(2) + "\\(");
      }
    }
    assertThat(named).isGreaterThan(AT_LEAST);
  }

  /** What classes of a name are made of, wherever they are. */
  private static Map<String, String> sources(Path root) throws IOException {
    Map<String, String> sources = new TreeMap<>();
    try (Stream<Path> own = Files.list(root);
        Stream<Path> examples = Files.list(root.resolve("examples"))) {
      Stream<Path> modules =
          Stream.concat(own, examples).filter(path -> Files.exists(path.resolve("pom.xml")));
      for (Path module : modules.toList()) {
        Path folder = module.resolve("src");
        if (!Files.exists(folder)) {
          continue;
        }
        try (Stream<Path> files = Files.walk(folder)) {
          for (Path file : files.filter(path -> path.toString().endsWith(".java")).toList()) {
            String name = file.getFileName().toString().replace(".java", "");
            sources.merge(name, Files.readString(file), String::concat);
          }
        }
      }
    }
    return sources;
  }
}

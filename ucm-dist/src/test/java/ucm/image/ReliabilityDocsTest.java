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
    Map<String, Path> sources = sources(root);
    String page = Files.readString(root.resolve("docs").resolve("reliability.md"));
    int named = 0;
    for (MatchResult proof : NAMED.matcher(page).results().toList()) {
      named++;
      Path source =
          Objects.requireNonNull(sources.get(proof.group(1)), "no class of " + proof.group());
      if (proof.group(2) != null) {
        assertThat(Files.readString(source))
            .as("the method of %s", proof.group())
            .containsPattern("\\bvoid " + proof.group(2) + "\\(");
      }
    }
    assertThat(named).isGreaterThan(AT_LEAST);
  }

  private static Map<String, Path> sources(Path root) throws IOException {
    Map<String, Path> sources = new TreeMap<>();
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
          files
              .filter(file -> file.toString().endsWith(".java"))
              .forEach(
                  file -> sources.put(file.getFileName().toString().replace(".java", ""), file));
        }
      }
    }
    return sources;
  }
}

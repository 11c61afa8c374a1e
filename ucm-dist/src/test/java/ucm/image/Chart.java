package ucm.image;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.dataformat.yaml.YAMLMapper;
import ucm.image.UcmProcess.Ended;

/** The Helm chart of the image, and what {@code tools/chart/tools} has to look at it. */
final class Chart {

  static final Path FOLDER = UcmProcess.IMAGE.resolve("share/helm/ucm");

  /** Values for each case that is shown: what is said in them, and what comes of it. */
  static final Path CASES = Path.of("src/test/resources/helm");

  private static final Path TOOLS = Path.of("..", "tools", "chart", "tools");
  private static final Path PYTHON = Path.of("/usr/bin/python3");

  private final Path tools;

  private Chart(Path tools) {
    this.tools = tools;
  }

  /** Skips, and says why, where the tools cannot be had. */
  static Chart assumeTools() throws Exception {
    assumeTrue(Files.isExecutable(PYTHON), "needs the Debian package python3 (.ci/packages)");
    Ended made = UcmProcess.program(PYTHON, TOOLS);
    assumeTrue(made.exitCode() == 0, () -> "the chart is not tested: " + made.out().strip());
    return new Chart(Path.of(made.out().strip()));
  }

  Ended helm(Object... arguments) throws Exception {
    return UcmProcess.program(
        Stream.concat(Stream.of(tools.resolve("helm")), Stream.of(arguments)).toArray());
  }

  /** What helm makes of the chart as the release {@code ucm} in the namespace {@code llm}. */
  String template(Object... arguments) throws Exception {
    return tryTemplate(arguments).requireOk().out();
  }

  Ended tryTemplate(Object... arguments) throws Exception {
    return helm(
        Stream.concat(
                Stream.of("template", "ucm", FOLDER, "-n", "llm", "--kube-version", "1.32"),
                Stream.of(arguments))
            .toArray());
  }

  /** Holds objects against the schemas of Kubernetes, which know each field. */
  Ended kubeconform(Path objects) throws Exception {
    return UcmProcess.program(
        tools.resolve("kubeconform"),
        "-strict",
        "-summary",
        "-schema-location",
        tools.resolve("schemas") + "/{{.ResourceKind}}{{.KindSuffix}}.json",
        objects);
  }

  /** The objects of a rendering, in its order. */
  static List<JsonNode> objects(String rendered) throws IOException {
    try (var found = YAMLMapper.shared().readerFor(JsonNode.class).<JsonNode>readValues(rendered)) {
      return found.readAll().stream().filter(JsonNode::isObject).toList();
    }
  }
}

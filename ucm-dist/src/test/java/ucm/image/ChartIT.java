package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import ucm.image.UcmProcess.Ended;

/** The Helm chart: what helm makes of it, and whether Kubernetes knows it all. */
class ChartIT {

  @TempDir private Path folder;

  private static Chart chart;

  @BeforeAll
  static void findTools() throws Exception {
    chart = Chart.assumeTools();
  }

  private static Path values(String name) {
    return Chart.CASES.resolve(name + ".values.yaml");
  }

  @ParameterizedTest
  @ValueSource(strings = {"default", "sidecar", "node"})
  void lintFindsNothing(String name) throws Exception {
    chart.helm("lint", "--strict", Chart.FOLDER, "-f", values(name)).requireOk();
  }

  @Test
  void lintFindsNothingInTheExamplesOfItsPage() throws Exception {
    int examples = 0;
    for (DocsBlock block : DocsBlock.of("docs/kubernetes.md")) {
      if (block.language().equals("yaml")) {
        Path values = Files.writeString(folder.resolve("values.yaml"), block.text());
        chart.helm("lint", "--strict", Chart.FOLDER, "-f", values).requireOk();
        examples++;
      }
    }
    assertThat(examples).isEqualTo(2);
  }

  /** The dashboard, which has a test of its own, is left out of these files. */
  @ParameterizedTest
  @ValueSource(strings = {"default", "sidecar", "node"})
  void eachCaseIsAsItsFileShowsIt(String name) throws Exception {
    String found =
        chart
            .template("-f", values(name), "--set", "dashboard.enabled=false")
            .replace(System.getProperty("ucm.version"), "VERSION")
            .replaceAll("(?m) +$", "");
    Path shown = Chart.CASES.resolve(name + ".yaml");
    if (Boolean.getBoolean("ucm.golden.write")) {
      Files.writeString(shown, found);
    }
    assertThat(found)
        .as("if it is meant, write %s again with -Ducm.golden.write=true", shown)
        .isEqualTo(Files.readString(shown));
  }

  @ParameterizedTest
  @ValueSource(strings = {"default", "sidecar", "node"})
  void kubernetesKnowsEveryField(String name) throws Exception {
    Path objects = folder.resolve("objects.yaml");
    String rendered = chart.template("-f", values(name), "--set", "podMonitor.enabled=true");
    Files.writeString(objects, rendered);
    Ended checked = chart.kubeconform(objects).requireOk();
    int count = Chart.objects(rendered).size();
    assertThat(checked.out())
        .contains("Valid: %d, Invalid: 0, Errors: 0, Skipped: 0".formatted(count));
  }

  @ParameterizedTest
  @CsvSource({
    "nodes.enabled=false, nodes",
    "user.id=0, user.id",
    "user.id=root, user.id",
    "daemon.stagingGiB=0, daemon.stagingGiB",
    "daemon.memory=lots, daemon.memory",
    "vllm.daemon=pod, vllm.daemon",
    "'store.volume.nfs.path=/a,store.volume.hostPath.path=/b', store.volume",
    "'vllm.enabled=true,vllm.daemon=node,node.enabled=false', choose vllm.daemon: sidecar"
  })
  void aWrongValueIsRefusedByItsName(String set, String named) throws Exception {
    Ended refused = chart.tryTemplate("--set", set);
    assertThat(refused.exitCode()).as(refused.out()).isNotZero();
    assertThat(refused.out()).contains(named);
  }

  @ParameterizedTest
  @ValueSource(strings = {"default", "sidecar", "node"})
  void theConfigurationHasKeysThatUcmKnows(String name) throws Exception {
    JsonNode config =
        Chart.objects(chart.template("-f", values(name), "--show-only", "templates/config.yaml"))
            .getFirst();
    Path file =
        Files.writeString(
            folder.resolve("ucm.yaml"), config.get("data").get("ucm.yaml").asString());
    UcmProcess.run("config", "check", file).requireOk();
  }

  @Test
  void theDashboardIsThatOfTheDocumentation() throws Exception {
    JsonNode dashboard =
        Chart.objects(chart.template("--show-only", "templates/dashboard.yaml")).getFirst();
    assertThat(dashboard.get("metadata").get("labels").get("grafana_dashboard").asString())
        .isEqualTo("1");
    assertThat(dashboard.get("data").get("ucm.json").asString().strip())
        .isEqualTo(Files.readString(DashboardTest.DASHBOARD).strip());
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.networknt.schema.InputFormat;
import com.networknt.schema.Schema;
import com.networknt.schema.SchemaRegistry;
import com.networknt.schema.SpecificationVersion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;
import tools.jackson.dataformat.yaml.YAMLMapper;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;

/** The example for Compose: what Compose's own schema and UCM's check say of it. */
class ComposeTest {

  private static final Path FOLDER = Path.of("src/main/image/share/container/compose");
  private static final String MODULE = "github.com/compose-spec/compose-go/v2@v2.4.9";

  /** The schema of the Compose specification, out of its Go module. */
  private static Schema schema() throws Exception {
    Path go =
        List.of("/usr/local/go/bin/go", "/usr/bin/go", "/usr/lib/go/bin/go").stream()
            .map(Path::of)
            .filter(Files::isExecutable)
            .findFirst()
            .orElse(Path.of("go"));
    String found = "";
    try {
      Process download =
          new ProcessBuilder(go.toString(), "mod", "download", "-json", MODULE)
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .directory(Path.of("target").toFile())
              .start();
      found = new String(download.getInputStream().readAllBytes());
      int _ = download.waitFor();
    } catch (IOException _) {
      // There is no Go.
    }
    JsonNode answer = found.isEmpty() ? null : JsonMapper.shared().readTree(found);
    assumeTrue(
        answer != null && answer.has("Dir"), "needs Go, and its module proxy, for " + MODULE);
    Path file = Path.of(answer.get("Dir").asString(), "schema", "compose-spec.json");
    // Its name is none that a schema may have.
    ObjectNode schema = JsonMapper.shared().readTree(Files.readString(file)).asObject();
    JsonNode _ = schema.remove("$id");
    return SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_7)
        .getSchema(schema.toString(), InputFormat.JSON);
  }

  private static String compose() throws IOException {
    return Files.readString(FOLDER.resolve("compose.yaml"));
  }

  private static List<String> faults(Schema schema, String yaml) {
    JsonNode tree = YAMLMapper.shared().readTree(yaml);
    return schema.validate(tree.toString(), InputFormat.JSON).stream()
        .map(Object::toString)
        .toList();
  }

  @Test
  void composeKnowsEveryFieldOfIt() throws Exception {
    Schema schema = schema();
    assertThat(faults(schema, compose())).isEmpty();
    assertThat(faults(schema, compose().replace("shm_size:", "shm_sice:"))).isNotEmpty();
  }

  @Test
  void theConfigurationBesideItIsRight() {
    Path file = FOLDER.resolve("ucm.yaml");
    ConfigReport report = UcmConfig.read(file).check(StoreCatalog.find());
    assertThat(report.hasErrors()).as(report.text()).isFalse();
  }
}

package ucm.pipeline.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.config.ConfigKey;
import ucm.pipeline.RecordingStore;
import ucm.pipeline.catalog.StoreCatalog;

class ConfigDocsTest {

  private final StoreCatalog catalog = RecordingStore.catalog(new ArrayList<>());

  @Test
  void everyDeclaredKeyHasALine() {
    String page = ConfigDocs.markdown(catalog);
    List<ConfigKey<?>> keys = new ArrayList<>(ConnectorSettings.TOP_LEVEL);
    keys.add(ConnectorSettings.STORE_PIPELINE);
    catalog.configKeys().values().forEach(keys::addAll);
    for (ConfigKey<?> key : keys) {
      assertThat(page).contains("| `" + key.name() + "`");
    }
    assertThat(page)
        .contains(
            "| `cache_stream_number` | an integer, 1 to 32 (streams) | 4 | Copy streams. |\n",
            "| `transferStreamNumber`, also `stream_number` | an integer, 1 to 1024 | 32 |",
            "| `store_pipeline` | text | required | Names of the stages joined by '\\|',",
            "| `ior_depth` | Ds3fs |\n",
            "| `asu_*` | a setting of the ASU accelerator |\n",
            "## Stage Fake\n\nHas no keys.\n\n");
  }

  @Test
  void theExamplesOfThePageAreGoodConfigurations() {
    String page = ConfigDocs.markdown(catalog);
    String[] parts = page.split("```yaml\n|```\n");
    assertThat(parts).hasSize(5);
    for (String yaml : List.of(parts[1], parts[3])) {
      assertThat(UcmConfig.parse("docs", yaml).check(catalog).text())
          .isEqualTo("0 errors, 0 warnings");
    }
  }
}

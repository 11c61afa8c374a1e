package ucm.pipeline.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.pipeline.RecordingStore;

/** Files with faults, each beside the whole report that the user gets for it. */
class BadConfigTest {

  @ParameterizedTest
  @ValueSource(
      strings = {
        "01-unknown-key",
        "02-values-out-of-range",
        "03-bad-top-level",
        "04-keys-in-the-wrong-place",
        "05-unknown-stage",
        "06-bad-pipeline-string",
        "07-no-pipeline",
        "08-unknown-connector",
        "09-nothing-of-a-connector",
        "10-both-shapes",
        "11-two-connectors",
        "12-connectors-is-a-map",
        "13-nfs-with-event-sync",
        "14-keys-of-other-stages",
        "15-maps-and-lists-where-values-belong",
        "16-empty-values",
        "17-set-twice-through-a-dot",
        "18-connector-without-name-and-config",
        "19-config-is-text",
        "20-numbers-in-other-spellings"
      })
  void reportsEverythingAtOnce(String name) {
    UcmConfig config = UcmConfig.parse("ucm.yaml", Resources.text("bad/" + name + ".yaml"));
    ConfigReport report = config.check(RecordingStore.catalog(new ArrayList<>()));
    assertThat(report.text() + "\n").isEqualTo(Resources.text("bad/" + name + ".txt"));
  }
}

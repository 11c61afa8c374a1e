package ucm.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.cli.Main;

/** What commands say of files that are not there, of keys without a meaning, and what they advise. */
class FaultsInWordsTest {

  @TempDir private Path folder;

  private static String refused(Object... args) {
    String err = said(2, args);
    assertThat(err).startsWith("ucm: ").doesNotContain("Exception");
    return err;
  }

  /** What a command that ends with a code prints on the standard error. */
  private static String said(int expected, Object... args) {
    StringWriter err = new StringWriter();
    String[] words = Stream.of(args).map(Object::toString).toArray(String[]::new);
    int exitCode = Main.run(new PrintWriter(new StringWriter()), new PrintWriter(err), words);
    assertThat(exitCode).as(err.toString()).isEqualTo(expected);
    return err.toString();
  }

  @Test
  void aModelConfigurationThatCannotBeReadIsWrongUsage() throws IOException {
    Path none = folder.resolve("none.json");
    String expected =
        "--model-config: the model configuration "
            + none
            + " cannot be read: there is no such file";
    assertThat(refused("calc", "--model-config", none)).contains(expected);
    assertThat(refused("calc", "--model-config", folder)).contains("Is a directory");
    Path empty = Files.writeString(folder.resolve("empty.json"), "{}");
    assertThat(refused("calc", "--model-config", empty)).contains("num_attention_heads");
  }

  @Test
  void otherFilesThatAreNotThereAreNamedInWordsToo() throws IOException {
    Path config = Files.writeString(folder.resolve("ucm.yaml"), config());
    assertThat(refused("store", "rm", "--config", config, "--all", folder.resolve("ids")))
        .contains("ids: there is no such file");
    assertThat(refused("trace", "generate", "--output", folder.resolve("no/trace.jsonl")))
        .contains("there is no such file or folder");
  }

  @Test
  void commandsThatServeNoEngineSayWhichKeysTheyDoNotUse() throws IOException {
    Path trace =
        Files.writeString(
            folder.resolve("trace.jsonl"),
            "{\"timestamp\": 0, \"input_length\": 900, \"output_length\": 1, \"hash_ids\": [1,"
                + " 2]}\n");
    Path config =
        Files.writeString(
            folder.resolve("ucm.yaml"),
            "use_lite: true\nuse_layerwise: true\nenable_record_traces: true\n" + config());
    for (Object[] command :
        new Object[][] {
          {"trace", "replay", trace, "--config", config},
          {"explain", trace, "--request", 1, "--config", config},
          {"demo", "--prompts", 1, "--input-len", 256, "--config", config}
        }) {
      assertThat(said(0, command))
          .contains("use_layerwise is not used here", "enable_record_traces is not used here");
    }
    Files.writeString(config, "use_lite: true\n" + config());
    assertThat(said(0, "trace", "replay", trace, "--config", config)).doesNotContain("not used");
  }

  private String config() {
    return """
    ucm_connectors:
      - ucm_connector_name: "UcmPipelineStore"
        ucm_connector_config:
          store_pipeline: "Cache|Posix"
          storage_backends: "%s"
    """
        .formatted(folder);
  }
}

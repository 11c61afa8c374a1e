package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A user's mistakes: each gets a message that helps, none a stack trace. */
class BadInputTest {

  private static final String GOOD =
      """
      ucm_connectors:
        - ucm_connector_name: "UcmPipelineStore"
          ucm_connector_config:
            store_pipeline: "Cache|Posix"
            storage_backends: "/mnt/test"
            io_direct: false
      use_layerwise: true
      """;

  @TempDir private Path folder;

  @ParameterizedTest(name = "[{index}] {0} -> {1}")
  @CsvSource(
      delimiter = ';',
      quoteCharacter = '`',
      textBlock =
          """
          io_direct: false            ; io_driect: false                       ; io_direct
          storage_backends: "/mnt/test" ; cache_stream_number: 4               ; storage_backends
          use_layerwise: true         ; "use_layerwise: [                      ; ucm.yaml:8:1
          """)
  void everyBadConfigSaysWhatToDo(String good, String bad, String expected) throws IOException {
    Path file = folder.resolve("ucm.yaml");
    assertThat(GOOD).contains(good);
    Files.writeString(file, GOOD.replace(good, bad));
    CommandRun.Ended check = CommandRun.run("config", "check", file);
    assertThat(check.exitCode()).as(check.all()).isEqualTo(2);
    assertThat(check.all()).contains(expected, "ucm.yaml").doesNotContain("Exception", "\tat ");
  }

  @Test
  void acceptsTheGoodOne() throws IOException {
    Path file = Files.writeString(folder.resolve("ucm.yaml"), GOOD);
    CommandRun.Ended check = CommandRun.run("config", "check", file);
    assertThat(check.exitCode()).as(check.all()).isZero();
    CommandRun.Ended show = CommandRun.run("config", "show", file);
    assertThat(show.out()).contains("storage_backends", "/mnt/test", "ucm.yaml:5");
  }

  @Test
  void knowsEveryKeyOfTheOriginal() throws IOException {
    Path file = folder.resolve("ucm.yaml");
    Path metrics = Files.writeString(folder.resolve("metrics.yaml"), "metric_prefix: \"ucm:\"\n");
    try (InputStream keys = BadInputTest.class.getResourceAsStream("all-keys.yaml")) {
      String text = new String(keys.readAllBytes(), StandardCharsets.UTF_8);
      Files.writeString(file, text.replace("/etc/ucm/metrics.yaml", metrics.toString()));
    }
    CommandRun.Ended check = CommandRun.run("config", "check", file);
    assertThat(check.exitCode()).as(check.all()).isZero();
    assertThat(check.out())
        .doesNotContain("no known key")
        .contains("ior_entries: is ignored: it belongs to stage Ds3fs")
        .contains("transferStreamNumber: is ignored: it belongs to stage Nfs");
  }

  @Test
  void everyBadTraceSaysWhatIsWrong() throws IOException {
    String good =
        "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}\n";
    assertRefused(2, folder.resolve("missing.jsonl"), "missing.jsonl");
    assertRefused("empty.jsonl", new byte[0], "empty");
    assertRefused("junk.jsonl", new byte[] {0, 1, 2, 3, 4, (byte) 0xFE, 10, 0}, "junk.jsonl");
    assertRefused("prose.jsonl", text("Once upon a time\nthere was no trace\n"), "prose.jsonl");
    assertRefused("cut.jsonl.gz", new byte[] {0x1F, (byte) 0x8B, 8, 0, 0, 0, 0}, "cut.jsonl.gz");
    assertRefused(
        "negative.jsonl", text(good.replace("600", "-600").repeat(101)), "negative.jsonl");
    Path folderWithoutFiles = Files.createDirectories(folder.resolve("nothing"));
    assertRefused(1, folderWithoutFiles, "nothing");
  }

  @Test
  void skipsABadLineAndNamesIt() throws IOException {
    String good =
        "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}\n";
    Path trace = folder.resolve("trace.jsonl");
    Files.writeString(trace, good + "{\"timestamp\": 1, \"input_length\":\n" + good);
    CommandRun.Ended analysis = CommandRun.run("trace", "analyze", trace, "--json");
    assertThat(analysis.exitCode()).as(analysis.all()).isZero();
    assertThat(analysis.json().get("summary").get("requests").asLong()).isEqualTo(2);
    assertThat(analysis.err()).contains("trace.jsonl:2", "skipped 1 bad line");
  }

  private void assertRefused(String name, byte[] content, String expected) throws IOException {
    Path trace = folder.resolve(name);
    Files.write(trace, content);
    assertRefused(1, trace, expected);
  }

  private static void assertRefused(int exitCode, Path trace, String expected) {
    CommandRun.Ended analysis = CommandRun.run("trace", "analyze", trace);
    assertThat(analysis.exitCode()).as(analysis.all()).isEqualTo(exitCode);
    assertThat(analysis.err()).contains(expected).doesNotContain("Exception", "\tat ");
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}

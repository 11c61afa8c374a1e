package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** {@code ucm config check} finds what {@code open} would refuse, with the stores of the image. */
class ConfigCheckTest {

  @TempDir private Path folder;
  private Path directory = Path.of("");

  @BeforeEach
  void makesADirectory() throws IOException {
    directory = Files.createDirectory(folder.resolve("blocks"));
  }

  private record Checked(int exitCode, String text) {}

  private Checked check(String pipeline, String more, String top) throws IOException {
    Path file = folder.resolve("ucm.yaml");
    Files.writeString(
        file,
        """
        ucm_connectors:
          - ucm_connector_name: "UcmPipelineStore"
            ucm_connector_config:
              store_pipeline: "%s"
        %s
        %s
        """
            .formatted(pipeline, more.indent(6).stripTrailing(), top));
    CommandRun.Ended ended = CommandRun.run("config", "check", file, "--plugins", directory);
    return new Checked(ended.exitCode(), ended.all().replace(file.toString(), "ucm.yaml"));
  }

  private String directories() {
    return "storage_backends: " + directory;
  }

  @Test
  void whatOpensHasNoErrors() throws IOException {
    for (String pipeline : new String[] {"Cache|Posix", "Cache|Cache|Posix", "Posix", "Cache"}) {
      String values = pipeline.contains("Posix") ? directories() : "";
      Checked checked = check(pipeline, values, "");
      assertThat(checked.text()).contains("0 errors");
      assertThat(checked.exitCode()).isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "Posix|Cache, Posix takes a last stage below it that keeps blocks somewhere else; found Cache",
    "Posix|Posix, Posix takes a last stage below it that keeps blocks somewhere else; found Posix",
    "Fake|Posix, Fake is a last stage and takes no next stage; found Posix",
    "Empty|Posix, Empty is a last stage and takes no next stage; found Posix",
    "Cache|Posix|Nfs, in Posix|Nfs both would keep their blocks in storage_backends",
    "Cache|Fake, 'Cache hands bytes on, and the next stage, Fake, keeps metadata only'"
  })
  void orderOfStagesThatCannotWorkIsAnErrorOfThePipeline(String pipeline, String message)
      throws IOException {
    Checked checked = check(pipeline, directories(), "");
    assertThat(checked.text()).contains("ucm.yaml:4:23: error: store_pipeline: " + message);
    assertThat(checked.exitCode()).isEqualTo(2);
  }

  @Test
  void cacheWithNothingBehindThatIsToLoadFromBehindIsAnError() throws IOException {
    assertThat(check("Cache", "cache_load_backend_only: true", "").text())
        .contains("store_pipeline: cache_load_backend_only is true, and Cache is the last stage");
  }

  @Test
  void keyOfAStageThatIsNotInThePipelineIsSaidToBelongToIt() throws IOException {
    assertThat(check("Posix", directories() + "\ncache_load_backend_only: true", "").text())
        .contains("cache_load_backend_only: is ignored: it belongs to stage Cache, which is not");
  }

  @Test
  void bufferOfNoBytesIsAnError() throws IOException {
    Checked checked = check("Cache|Posix", directories() + "\ncache_buffer_capacity_gb: 0", "");
    assertThat(checked.text())
        .contains("cache_buffer_capacity_gb: found 0; allowed is a number, more than 0");
    assertThat(checked.exitCode()).isEqualTo(2);
  }

  @Test
  void missingOrBrokenMetricsFileIsAnError() throws IOException {
    Path metrics = folder.resolve("metrics.yaml");
    String top = "metrics_config_path: " + metrics;
    assertThat(check("Posix", directories(), top).text())
        .contains("error: metrics_config_path: the metrics file " + metrics + " is not there");
    Files.writeString(metrics, "port: [not, a, port");
    Checked broken = check("Posix", directories(), top);
    assertThat(broken.text()).contains("error: metrics_config_path: ", "1 error");
    assertThat(broken.exitCode()).isEqualTo(2);
  }

  @Test
  void backendThatIsNoPathOrNoDirectoryIsAnError() throws IOException {
    assertThat(check("Posix", "storage_backends: 5", "").text())
        .contains("error: storage_backends: found 5; allowed is a path");
    Path file = Files.writeString(folder.resolve("file"), "x");
    assertThat(check("Cache|Posix", "storage_backends: " + file, "").text())
        .contains("storage_backends: found " + file + ", and " + file + " is no directory");
    assertThat(check("Posix", "storage_backends: " + file.resolve("sub"), "").text())
        .contains(file + " is no directory: remove what is there, or name another", "1 error");
    assertThat(check("Posix", "storage_backends: " + folder.resolve("new"), "").text())
        .contains("0 errors");
    assertThat(folder.resolve("new")).doesNotExist();
  }

  @Test
  void mistypedStageHidesNoOtherProblem() throws IOException {
    String values = "posix_capacity_gb: -1\ncache_stream_number: 99\nposix_gc_enabel: true";
    assertThat(check("Cach|Posxi", values, "use_lite: maybe").text())
        .contains(
            "there is no stage Cach; did you mean Cache?",
            "there is no stage Posxi; did you mean Posix?",
            "storage_backends: is required and not set",
            "posix_capacity_gb: found -1",
            "cache_stream_number: found 99",
            "posix_gc_enabel: is no known key",
            "use_lite: found");
    assertThat(check("Cache|Something", values, "").text())
        .contains("there is no stage Something", "posix_capacity_gb: found -1");
    assertThat(check("Cache||Posix", values, "").text())
        .contains("has no stage name", "posix_capacity_gb: found -1", "cache_stream_number: found");
  }

  @Test
  void integerThatIsTooLargeIsToldTheTrueRange() throws IOException {
    assertThat(check("Posix", directories(), "persist_token_threshold: 2147483648").text())
        .contains("found 2147483648; allowed is an integer, 0 to 2147483647 (tokens)");
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The benchmark of layers; of its figures only those that do not depend on speed are judged. */
class BenchCacheIT {

  @TempDir private Path folder;

  @Test
  void layerwiseMeasuresWaitsBesideTheIdealAndCleansUp() throws IOException {
    UcmProcess.Ended bench =
        layerwise("--compute-ms", "0,0.5", "--repeat", 2, "--warmup", 1, "--json").requireOk();
    JsonNode results = bench.json().get("results");
    assertThat(results.size()).isEqualTo(6);
    for (JsonNode result : results) {
      double compute = result.get("simulated_compute_ms").asDouble();
      assertThat(result.get("step_ms").get("min").asDouble()).isGreaterThan(4 * compute);
      assertThat(result.get("ideal_step_ms").get("min").asDouble()).isGreaterThan(4 * compute);
      assertThat(result.get("ratio").get("median").asDouble()).isPositive();
    }
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left).isEmpty();
    }
  }

  @Test
  void layerwisePrintsATableAndRefusesNonsense() {
    UcmProcess.Ended bench =
        layerwise("--compute-ms", "0.5", "--repeat", 1, "--warmup", 0).requireOk();
    assertThat(bench.out())
        .contains("4 layers of 16.0 KiB, 4 blocks")
        .contains("load, from the pool", "load, from files", "dump", "IDEAL WAIT", "load average");
    assertRefused("--compute-ms", "layerwise", "--compute-ms", "-1");
    assertRefused("are available", "layerwise", "--blocks", 10_000_000);
  }

  private UcmProcess.Ended layerwise(Object... args) {
    Object[] tiny = {
      "bench", "layerwise", "--dir", folder, "--layers", 4, "--blocks", 4, "--shard-size", 16_384
    };
    return UcmProcess.run(Stream.of(tiny, args).flatMap(Stream::of).toArray());
  }

  private static void assertRefused(String expected, Object... args) {
    UcmProcess.Ended bench =
        UcmProcess.run(Stream.concat(Stream.of("bench"), Stream.of(args)).toArray());
    assertThat(bench.exitCode()).as(bench.all()).isEqualTo(2);
    assertThat(bench.err()).contains(expected).doesNotContain("Exception", "\tat ");
  }
}

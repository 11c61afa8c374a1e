package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** The benchmarks of Cache; of their figures only those that do not depend on speed are judged. */
class BenchCacheIT {

  @TempDir private Path folder;

  @Test
  void policiesHitEverythingThatComesAgainWhenThereIsRoomForAll() throws IOException {
    Path trace = trace();
    UcmProcess.Ended bench =
        UcmProcess.run("bench", "policies", trace, "--percent", "20,100", "--json");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    JsonNode results = bench.json().get("results");
    assertThat(results.findValuesAsString("policy")).containsExactly("lru", "aged_lru", "s3fifo");
    for (JsonNode result : results) {
      assertThat(result.get("blocks").asInt()).isEqualTo(160);
      assertThat(result.get("different_blocks").asInt()).isEqualTo(20);
      assertThat(result.get("hit_rate_unbounded").asDouble()).isEqualTo(140 / 160.0);
      JsonNode some = result.get("sizes").get(0);
      JsonNode all = result.get("sizes").get(1);
      assertThat(some.get("capacity_blocks").asInt()).isEqualTo(4);
      assertThat(all.get("hit_rate").asDouble()).isEqualTo(140 / 160.0);
      assertThat(some.get("hit_rate").asDouble()).isLessThan(140 / 160.0);
    }
  }

  @Test
  void policiesPrintsATableForEachTrace() throws IOException {
    UcmProcess.Ended bench = UcmProcess.run("bench", "policies", trace(), "--policies", "lru");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.out())
        .contains("40 requests, 160 blocks, 20 different; without a bound 87.50% hit")
        .contains("POLICY  HITS AT 1%");
    assertThat(bench.err()).isEmpty();
    Files.writeString(
        folder.resolve("bad.jsonl"), Files.readString(trace()) + "{\"hash_ids\": 7\n");
    bench = UcmProcess.run("bench", "policies", folder.resolve("bad.jsonl"), "--policies", "lru");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
    assertThat(bench.err()).contains("skipped 1 bad line(s)");
  }

  @Test
  void policiesRefusesWhatItCannotMeasure() throws IOException {
    assertRefused("lru, aged_lru, s3fifo", "policies", trace(), "--policies", "mru");
    assertRefused("--percent", "policies", trace(), "--percent", "0");
  }

  @Test
  void layerwiseMeasuresWaitsBesideTheIdealAndCleansUp() throws IOException {
    UcmProcess.Ended bench =
        layerwise("--compute-ms", "0,0.5", "--repeat", 2, "--warmup", 1, "--json");
    assertThat(bench.exitCode()).as(bench.all()).isZero();
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
    UcmProcess.Ended bench = layerwise("--compute-ms", "0.5", "--repeat", 1, "--warmup", 0);
    assertThat(bench.exitCode()).as(bench.all()).isZero();
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

  /** Five prompts of four blocks, eight times. */
  private Path trace() throws IOException {
    List<String> lines =
        IntStream.range(0, 40)
            .mapToObj(
                i -> {
                  int first = i % 5 * 4;
                  return String.format(
                      "{\"timestamp\": %d, \"input_length\": 2048, \"output_length\": 1,"
                          + " \"hash_ids\": [%d, %d, %d, %d]}",
                      i, first, first + 1, first + 2, first + 3);
                })
            .toList();
    return Files.write(folder.resolve("trace.jsonl"), lines);
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** What the benchmark prints and leaves on disk; no figure of it is judged here. */
class BenchIT {

  private static final Object[] TINY = {
    "--blocks", 4, "--task-blocks", 2, "--lookups", 16, "--repeat", 2, "--warmup", 1, "--threads", 2
  };

  @TempDir private Path folder;

  @Test
  @Tag("full")
  void measuresPosixAndCacheBesideTheLimitsAndCleansUp() throws IOException {
    UcmProcess.Ended bench = bench("--dir", folder, "--buffer-gb", 0.05, "--json").requireOk();
    JsonNode results = bench.json().get("results");
    assertThat(results.findValuesAsString("pipeline"))
        .containsExactly("Posix", "Posix", "Cache|Posix", "Cache|Posix");
    assertThat(results.findValuesAsString("block_bytes"))
        .containsExactly("1048576", "2097152", "1048576", "2097152");
    for (JsonNode result : results) {
      assertThat(result.get("measures").findValuesAsString("unit"))
          .filteredOn(unit -> !unit.equals("GB/s"))
          .containsExactly("ids/s", "ids/s", "ids/s", "calls/s");
      for (JsonNode measure : result.get("measures")) {
        for (JsonNode spread : List.of(measure, measure.get("limit"), measure.get("ratio"))) {
          double median = spread.get("median").asDouble();
          assertThat(median).isPositive();
          assertThat(spread.get("min").asDouble()).isPositive().isLessThanOrEqualTo(median);
          assertThat(spread.get("max").asDouble()).isGreaterThanOrEqualTo(median);
        }
      }
      assertThat(result.get("calls").findValuesAsString("calls"))
          .containsExactly("4", "4", "4", "8", "8", "8", "32");
    }
    assertThat(limits(results.get(0)))
        .startsWith(
            "create+pwrite+close",
            "create+pwrite+close",
            "open+pread+close",
            "open+pread+close",
            "open+pread+CRC32C+close",
            "open+pread+CRC32C+close",
            "open+pread+close",
            "access, one thread");
    assertThat(limits(results.get(2)))
        .startsWith(
            "memcpy",
            "memcpy, then create+pwrite+close",
            "memcpy",
            "open+pread+close, then memcpy",
            "access, one thread");
    JsonNode machine = bench.json().get("machine");
    assertThat(machine.get("processors").asInt()).isPositive();
    assertThat(entries(folder)).isZero();
  }

  @Test
  @Tag("full")
  void printsTablesForPeople() {
    UcmProcess.Ended bench =
        bench(
                "--dir",
                folder,
                "--buffer-gb",
                0.05,
                "--block-size",
                16_384,
                "--shard-size",
                4096,
                "--tensor-size",
                2048)
            .requireOk();
    assertThat(bench.out())
        .contains("Posix: blocks of 0.02 MiB, 4 shard(s) of 2 tensor(s) of 2.0 KiB")
        .contains(
            "dump, until flushed", "prefix look-up, 0% hits", "RATIO", "P99 MS", "load average");
  }

  @Test
  @Tag("full")
  void usesNewFoldersWithinThoseOfAConfigurationAndLeavesTheRest() throws IOException {
    Path first = Files.createDirectories(folder.resolve("a"));
    Path second = Files.createDirectories(folder.resolve("b"));
    Path kept = Files.writeString(first.resolve("kept"), "a user's");
    UcmProcess.Ended bench =
        bench("--config", posix(first + ":" + second), "--block-size", 8192, "--json").requireOk();
    assertThat(bench.json().get("results").findValuesAsString("pipeline")).containsExactly("Posix");
    assertThat(kept).hasContent("a user's");
    assertThat(entries(first)).isEqualTo(1);
    assertThat(entries(second)).isZero();
  }

  @Test
  void measuresBothTiersOfStorageBesideEachAlone() throws IOException {
    Path local = Files.createDirectories(folder.resolve("local"));
    Path shared = Files.createDirectories(folder.resolve("shared"));
    Path yaml =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Posix|Nfs\"",
            "posix_storage_backends: \"" + local + "\"",
            "storage_backends: \"" + shared + "\"");
    UcmProcess.Ended bench =
        bench("--config", yaml, "--buffer-gb", 0.1, "--block-size", 65_536, "--json").requireOk();
    JsonNode result = bench.json().get("results").get(0);
    assertThat(result.get("measures").findValuesAsString("name"))
        .contains("load, from Posix", "load, from Nfs");
    assertThat(limits(result)).contains("load of Cache|Posix", "load of Cache|Nfs");
    assertThat(result.get("measures").findValuesAsString("median")).doesNotContain("NaN", "0.0");
    assertThat(entries(local)).isZero();
    assertThat(entries(shared)).isZero();
  }

  @Test
  @Tag("full")
  void measuresLayerByLayerWithSeveralTasksAtATime() throws IOException {
    UcmProcess.Ended bench =
        bench(
                "--config",
                posix(folder.toString()),
                "--block-size",
                65_536,
                "--shard-size",
                16_384,
                "--layerwise",
                "--in-flight",
                3,
                "--json")
            .requireOk();
    JsonNode result = bench.json().get("results").get(0);
    assertThat(result.get("layerwise").asBoolean()).isTrue();
    assertThat(result.get("in_flight").asInt()).isEqualTo(3);
    assertThat(result.get("calls").findValuesAsString("calls"))
        .as("four layers in each of two rounds")
        .startsWith("8", "8", "8");
  }

  private static UcmProcess.Ended bench(Object... args) {
    return UcmProcess.run(
        Stream.of(new Object[] {"bench", "store"}, TINY, args).flatMap(Stream::of).toArray());
  }

  private Path posix(String directories) throws IOException {
    return UcmYaml.in(
        folder, "store_pipeline: \"Posix\"", "storage_backends: \"" + directories + "\"");
  }

  private static List<String> limits(JsonNode result) {
    return result.get("measures").findValues("limit").stream()
        .map(limit -> limit.get("name").asString())
        .toList();
  }

  private static long entries(Path folder) throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.count();
    }
  }
}

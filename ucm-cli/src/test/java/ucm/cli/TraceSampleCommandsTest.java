package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** {@code ucm trace stat} and {@code tiers} on traces with more blocks than they may keep. */
class TraceSampleCommandsTest {

  private static final Object[] TIERS = {
    "tiers", "--model=qwq-32b", "--hbm=20GB", "--dram=100GB", "--storage=1TB"
  };

  @TempDir private Path folder;

  private Path trace = Path.of("");
  private String err = "";

  @BeforeEach
  void generate() {
    trace = folder.resolve("made.jsonl");
    run("generate", "--requests", 3000, "--mix", "chat=0.9,document=0.1", "-o", trace);
  }

  @Test
  void simulatesTiersOnASampleByItselfAndSaysSo() {
    JsonNode exact = json(TIERS);
    assertThat(err).isEmpty();
    JsonNode sampled = json(with(TIERS, "--max-blocks", 4000));
    assertThat(err).contains("more blocks than fit into memory (at most 4,000)", "from a sample");
    assertThat(exact.get("exact").asBoolean()).isTrue();
    assertThat(exact.get("sample_rate").asDouble()).isEqualTo(1);
    assertThat(sampled.get("exact").asBoolean()).isFalse();
    assertThat(sampled.get("sample_rate").asDouble()).isBetween(0.001, 0.6);
    for (String same :
        new String[] {"requests", "input_tokens", "output_tokens", "block_references"}) {
      assertThat(sampled.get("summary").get(same)).isEqualTo(exact.get("summary").get(same));
    }
    long references = exact.get("summary").get("block_references").asLong();
    long found = 0;
    for (String tier :
        new String[] {"hbm_blocks", "dram_blocks", "storage_blocks", "computed_blocks"}) {
      double estimate = sampled.get("tiers").get(tier).asLong();
      assertThat(estimate)
          .as(tier)
          .isCloseTo(exact.get("tiers").get(tier).asDouble(), within(0.05 * references));
      found += sampled.get("tiers").get(tier).asLong();
    }
    assertThat(found).isEqualTo(references);
    assertThat(sampled.get("storage_written_bytes").asDouble())
        .isCloseTo(
            exact.get("storage_written_bytes").asDouble(),
            within(0.1 * exact.get("storage_written_bytes").asDouble()));
  }

  @Test
  void saysInEveryFormThatTiersAreEstimated() throws IOException {
    Path page = folder.resolve("report.html");
    Object[] plan = with(TIERS, "--sample", 0.25, "--gpu=h20", "--html", page);
    String table = run(plan);
    assertThat(err).as("was asked for").isEmpty();
    assertThat(table)
        .contains(
            "tiers and bytes from 25.00%", "Exact: requests, time span, tokens, number of blocks")
        .contains("Times need whole requests", "pays from")
        .contains("The smallest tier is 37 blocks of the sample")
        .doesNotContain("TTFT", "GPU hours");
    assertThat(Files.readString(page))
        .contains("tiers and bytes from 25.00%", "\"sampled\":0.25")
        .doesNotContain("\"time_bins\":", "\"ttft\":");
    assertThat(run(with(TIERS, "--sample-size", 1000, "--csv")).lines())
        .first()
        .asString()
        .endsWith(",sample_rate");
    assertThat(run(TIERS)).doesNotContain("Estimated");
  }

  @Test
  void estimatesTotalsFromASampleByItselfAndSaysSo() {
    JsonNode exact = json("stat");
    assertThat(err).isEmpty();
    JsonNode sampled = json("stat", "--max-blocks", 4000);
    assertThat(err).contains("from a sample");
    assertThat(exact.get("exact").asBoolean()).isTrue();
    assertThat(sampled.get("exact").asBoolean()).isFalse();
    assertThat(sampled.get("curve_sample_rate").asDouble()).isBetween(0.001, 0.6);
    assertThat(sampled.get("summary").get("input_tokens"))
        .isEqualTo(exact.get("summary").get("input_tokens"));
    assertThat(exact.has("insights")).isTrue();
    assertThat(sampled.has("insights")).isFalse();
  }

  @Test
  void saysInEveryFormThatFiguresOfATraceAreEstimated() {
    assertThat(run("stat", "--sample", 0.25))
        .contains("unique blocks and ideal hit rate from 25.00%")
        .contains("Sessions, times and hot prefixes need the whole trace")
        .doesNotContain("SESSIONS");
    assertThat(err).isEmpty();
    assertThat(run("stat")).contains("from request to its last reuse").doesNotContain("Estimated");
    assertThat(run("stat", "--sample", 1)).doesNotContain("Estimated", "about");
  }

  @Test
  void simulatesPoliciesOnASampleOfFixedSize() {
    Object[] csv = {"analyze", "--policies=lru", "--capacities=5000", "--csv"};
    assertThat(run(with(csv, "--sample-size", 2000)).lines())
        .filteredOn(line -> line.startsWith("lru,"))
        .hasSize(3);
    assertThat(run("analyze", "--policies=lru", "--sample-size", 2000)).contains("sampled blocks");
  }

  private JsonNode json(Object... arguments) {
    return JsonMapper.builder().build().readTree(run(with(arguments, "--json")));
  }

  private String run(Object... arguments) {
    Stream<Object> all = Stream.concat(Stream.of("trace"), Arrays.stream(arguments));
    if (!arguments[0].equals("generate")) {
      all = Stream.concat(all, Stream.of(trace));
    }
    CommandRun.Ended ended = CommandRun.run(all.toArray());
    err = arguments[0].equals("generate") ? "" : ended.err();
    assertThat(ended.exitCode()).as(ended.err()).isZero();
    return ended.out();
  }

  private static Object[] with(Object[] arguments, Object... more) {
    return Stream.concat(Arrays.stream(arguments), Arrays.stream(more)).toArray();
  }
}

package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;

/** From a made-up trace to advice, with one command after the other. */
class TraceCommandsTest {

  @TempDir private Path folder;

  @Test
  void keepsWhatAnAnalysisNeedsThroughEveryTool() throws IOException {
    Path made = generated("made.jsonl.gz");
    Path ucm = folder.resolve("ucm.log");
    Path back = folder.resolve("back.jsonl");
    Path anonymous = folder.resolve("anonymous.jsonl");
    run("trace", "merge", made, "--to", "ucm", "-o", ucm);
    run("trace", "merge", ucm, "-o", back, "--block-tokens", 512);
    run("trace", "anonymize", made, "-o", anonymous);

    JsonNode original = run("trace", "stat", made, "--json").json();
    JsonNode summary = original.get("summary");
    assertThat(summary.get("requests").asInt()).isEqualTo(400);
    JsonNode given = run("trace", "stat", anonymous, "--json").json().get("insights");
    for (String what : List.of("sessions", "session_gaps", "block_gaps", "lifetimes")) {
      assertThat(given.get(what)).as(what).isEqualTo(original.get("insights").get(what));
    }
    // UCM lines have full blocks only, and partial ones never hit.
    JsonNode converted = run("trace", "stat", back, "--json").json().get("summary");
    assertThat(converted.get("ideal_hit_blocks")).isEqualTo(summary.get("ideal_hit_blocks"));

    Path merged = folder.resolve("merged.jsonl");
    run("trace", "merge", made, made, "--align", "-o", merged);
    JsonNode twice = run("trace", "stat", merged, "--json").json().get("summary");
    assertThat(twice.get("unique_blocks")).isEqualTo(summary.get("unique_blocks"));
    assertThat(twice.get("requests").asInt()).isEqualTo(800);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).hasSize(5).noneMatch(file -> file.toString().endsWith(".part"));
    }
  }

  @Test
  void simulatesPoliciesBelowTheBound() {
    Path made = generated("made.jsonl");
    JsonNode json =
        run("trace", "analyze", made, "--policies", "all", "--capacities", "5%,50%", "--json")
            .json();
    Map<Long, Long> bound = new HashMap<>();
    Map<Long, Long> best = new HashMap<>();
    for (JsonNode row : json.get("curve")) {
      Map<Long, Long> hits = row.get("policy").asString().equals("opt") ? bound : best;
      hits.merge(row.get("capacity_blocks").asLong(), row.get("hit_tokens").asLong(), Math::max);
    }
    assertThat(json.get("curve")).hasSize(2 * 2 + 4 * 2);
    assertThat(bound).hasSize(2);
    bound.forEach(
        (capacity, hits) -> assertThat(best.get(capacity)).isPositive().isLessThanOrEqualTo(hits));
  }

  @Test
  void estimatesATraceThatIsTooLargeAndSaysSo() {
    Path made = generated("made.jsonl");
    CommandRun.Ended ended = run("trace", "analyze", made, "--max-blocks", 500);
    assertThat(ended.err()).contains("estimated from a sample");
    assertThat(ended.out()).contains("about", "LRU is estimated");
    assertThat(CommandRun.run("trace", "stat", made, "--json").exitCode()).isZero();
  }

  @Test
  void simulatesPoliciesOnASample() {
    Path made = generated("made.jsonl");
    CommandRun.Ended ended =
        run("trace", "analyze", made, "--policies", "lru,opt", "--capacity=50%", "--sample=0.5");
    assertThat(ended.out()).contains("OPT", "simulated on the sampled blocks");
    Object[] csv = {"trace", "analyze", made, "--policies", "s3-fifo", "--capacity=50%", "--csv"};
    double all = column(run(csv), "s3-fifo", "token_hit_rate");
    double sampled = column(run(with(csv, "--sample=0.5")), "s3-fifo", "token_hit_rate");
    assertThat(sampled).isBetween(all - 0.2, all + 0.2).isNotEqualTo(all);
  }

  @Test
  void printsCsvForSpreadsheets() {
    Path made = generated("made.jsonl");
    CommandRun.Ended analyzed =
        run("trace", "analyze", made, "--capacity=100", "--model=qwq-32b", "--csv");
    assertThat(analyzed.out().lines())
        .hasSize(3)
        .first()
        .isEqualTo(
            "policy,touch_order,capacity_blocks,hit_blocks,hit_tokens,token_hit_rate,"
                + "capacity_tokens,capacity_bytes");
    assertThat(column(analyzed, "lru", "capacity_tokens")).isEqualTo(51_200);
    CommandRun.Ended tiers =
        run("trace", "tiers", made, "--model=qwq-32b", "--dram=40GB", "--hbm=9GB", "--csv");
    double shares = 0;
    for (String tier : List.of("HBM", "DRAM", "storage", "computed")) {
      shares += column(tiers, tier, "token_share");
    }
    assertThat(shares).isEqualTo(1, within(1e-9));
    assertThat(column(run("trace", "stat", made, "--csv"), "block_gap", "count")).isPositive();
    assertThat(column(run("calc", "--model=qwq-32b", "--csv"), "Qwen/QwQ-32B", "bytes_per_token"))
        .isEqualTo(262_144);
  }

  /** The number in a column of the first row that begins with a cell. */
  private static double column(CommandRun.Ended ended, String first, String name) {
    List<String> lines = ended.out().lines().toList();
    int column = List.of(lines.getFirst().split(",")).indexOf(name);
    return lines.stream()
        .filter(line -> line.startsWith(first + ","))
        .mapToDouble(line -> Double.parseDouble(List.of(line.split(",")).get(column)))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void comparesTheSampledCurveWithTheExactOne() {
    Path made = generated("made.jsonl");
    JsonNode sampled =
        run("trace", "analyze", made, "--sample", 0.5, "--compare", "--json").json().get("sampled");
    assertThat(sampled).hasSize(2);
    assertThat(sampled.get(0).get("mean_error").asDouble()).isBetween(0.0, 0.2);
  }

  @Test
  void simulatesTiersAndSuggestsAConfigurationThatIsValid() throws IOException {
    Path made = generated("made.jsonl");
    Object[] plan = {
      "trace",
      "tiers",
      made,
      "--model",
      "qwen2.5-7b",
      "--nodes",
      2,
      "--ranks",
      2,
      "--hbm",
      "10GB",
      "--dram",
      "40GB",
      "--storage",
      "1TB",
      "--routing",
      "session",
      "--gpu",
      "h100"
    };
    JsonNode json = run(with(plan, "--json")).json();
    JsonNode tiers = json.get("tiers");
    assertThat(
            tiers.get("hbm_blocks").asLong()
                + tiers.get("dram_blocks").asLong()
                + tiers.get("storage_blocks").asLong()
                + tiers.get("computed_blocks").asLong())
        .isEqualTo(json.get("summary").get("block_references").asLong());
    assertThat(json.get("simulated_compute").get("ttft_with").get("mean").asDouble())
        .isLessThan(json.get("simulated_compute").get("ttft_without").get("mean").asDouble());
    assertThat(run(plan).out())
        .contains("SIMULATED COMPUTE", "GPU hours saved", "drive writes a day", "knee");

    Path yaml = folder.resolve("ucm.yaml");
    Files.writeString(yaml, run(with(plan, "--yaml")).out());
    assertThat(run("config", "check", yaml).exitCode()).isZero();
  }

  @Test
  void simulatesLocalDisksBeforeStorage() throws IOException {
    Path made = generated("made.jsonl");
    Object[] plan = {"trace", "tiers", made, "--model=qwen2.5-7b", "--dram=2GB", "--storage=1TB"};
    JsonNode without = run(with(plan, "--gpu=h100", "--json")).json();
    JsonNode json = run(with(plan, "--disk=20GB", "--gpu=h100", "--json")).json();
    JsonNode tiers = json.get("tiers");
    assertThat(tiers.get("disk_blocks").asLong()).isPositive();
    assertThat(tiers.get("disk_blocks").asLong() + tiers.get("storage_blocks").asLong())
        .isEqualTo(without.get("tiers").get("storage_blocks").asLong());
    assertThat(json.get("simulated_compute").get("load_seconds").asDouble())
        .isLessThan(without.get("simulated_compute").get("load_seconds").asDouble());
    assertThat(run(plan).out()).doesNotContain("\ndisk ");
    assertThat(run(with(plan, "--disk=20GB")).out()).contains("\ndisk ");

    Path yaml = folder.resolve("ucm.yaml");
    Files.writeString(yaml, run(with(plan, "--disk=20GB", "--yaml")).out());
    assertThat(yaml)
        .content()
        .contains("Cache|Posix|Nfs", "posix_capacity_gb: 18.6", "nfs_capacity_gb: 931.3");
    assertThat(run("config", "check", yaml).out()).contains("0 errors, 0 warnings");
  }

  @Test
  void saysWhatTiersCostWhatToBuyAndWhatCannotBe() throws IOException {
    Path made = generated("made.jsonl");
    Path html = folder.resolve("tiers.html");
    Object[] plan = {
      "trace",
      "tiers",
      made,
      "--model=qwen2.5-7b",
      "--hbm=1GB",
      "--dram=40GB",
      "--storage=100GB",
      "--prefill-rate=20000",
      "--gpu-hour=2.50",
      "--dram-gb-month=3",
      "--ssd-gb-month=0.1",
      "--ttft-p90=100",
      "--endurance=0.001"
    };
    JsonNode json = run(with(plan, "--json")).json();
    JsonNode costs = json.get("costs");
    JsonNode summary = json.get("summary");
    double hours =
        (summary.get("last_timestamp_millis").asDouble()
                - summary.get("first_timestamp_millis").asDouble())
            / 3.6e6;
    double monthly = 2.50 * 365.25 / 12 * 24 / hours;
    assertThat(costs.get("without_cache_a_month").asDouble())
        .isEqualTo(
            json.get("simulated_compute").get("compute_seconds_without").asDouble()
                / 3600
                * monthly,
            within(1e-6));
    assertThat(costs.get("gpus_a_month").asDouble())
        .isEqualTo(json.get("gpu_hours_with_tiers").asDouble() * monthly, within(1e-6));
    assertThat(costs.get("dram_a_month").asDouble()).isEqualTo(3 * 40, within(0.1));
    assertThat(costs.get("storage_a_month").asDouble()).isEqualTo(0.1 * 100, within(0.01));
    // Everything is in time, so the cheapest is none dearer than what was simulated.
    JsonNode cheapest = json.get("cheapest");
    assertThat(cheapest.get("reached").asBoolean()).isTrue();
    assertThat(cheapest.get("costs").get("with_tiers_a_month").asDouble())
        .isLessThanOrEqualTo(costs.get("with_tiers_a_month").asDouble());
    assertThat(json.get("warnings").toString()).contains("--endurance");

    assertThat(run(with(plan, "--html", html)).out())
        .contains("COST A MONTH", "Cheapest for a TTFT P90 of 100.0 s", "(--endurance)");
    assertThat(Files.readString(html))
        .contains("Cost a month with these tiers", "Cheapest for")
        // Always in this order.
        .contains("{\"name\":\"LRU, leaf last\",\"points\":[", "\"ttft\":{\"without\":[");

    Object[] tooFew = {"trace", "tiers", made, "--model=qwen2.5-7b", "--dram=4GB"};
    JsonNode scarce =
        run(with(
                tooFew,
                "--prefill-rate=1",
                "--gpu-hour=1",
                "--dram-gb-month=1",
                "--ttft-p90=0.001",
                "--json"))
            .json();
    assertThat(scarce.get("gpu_hours_with_tiers").asDouble())
        .isGreaterThan(scarce.get("gpu_hours_available").asDouble());
    assertThat(scarce.get("warnings").get(0).asString()).contains("requests would wait");
    assertThat(scarce.get("cheapest").get("reached").asBoolean()).isFalse();
  }

  @Test
  void printsKvSizes() throws IOException {
    assertThat(run("calc").out()).contains("deepseek-ai/DeepSeek-R1", "70,272");
    Path config =
        Files.writeString(
            folder.resolve("config.json"),
            """
            {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
             "num_key_value_heads": 2, "intermediate_size": 128, "torch_dtype": "float16"}
            """);
    JsonNode json = run("calc", "--model-config", config, "--tp", 4, "--json").json().get(0);
    assertThat(json.get("bytes_per_token_and_rank").asInt()).isEqualTo(2 * 2 * 16 * 2);
    assertThat(json.get("bytes_per_token").asInt()).isEqualTo(4 * 2 * 2 * 16 * 2);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      textBlock =
          """
          trace analyze x --policies clock                ; no policy clock is known
          trace analyze x --capacities many               ; a capacity is written like
          trace analyze x --capacities 5GB                ; need --model
          trace analyze x --sample 2                      ; must be above 0 and at most 1
          trace stat x --sample 0.1 --sample-size 9       ; exclude each other
          trace tiers x --model qwq-32b --max-blocks 0    ; is 1 or more
          trace analyze x --json --csv                    ; exclude each other
          trace analyze x --compare                       ; --compare needs
          trace tiers x                                   ; name a model
          trace tiers x --model gpt-9                     ; no model gpt-9
          trace tiers x --model qwq-32b --dram 5          ; a size with its unit
          trace tiers x --model qwq-32b --nodes 0         ; are 1 or more
          trace tiers x --model qwq-32b --routing random  ; round-robin, session or prefix
          trace tiers x --model qwq-32b --gpu abacus      ; no GPU abacus
          trace tiers x --model qwq-32b --gpu h20 --tflops 3 ; exclude each other
          trace tiers x --model qwq-32b --gpu-hour 2      ; --gpu-hour needs --gpu
          trace tiers x --model qwq-32b --ssd-gb-month 2  ; need --gpu-hour
          trace tiers x --model qwq-32b --dram 1GB --gpu h20 --gpu-hour 2 ; give --dram-gb-month
          trace tiers x --model qwq-32b --gpu h20 --gpu-hour=-2 ; --gpu-hour is 0 or more
          trace tiers x --model qwq-32b --endurance 0     ; --endurance is above 0
          trace generate --mix fish=1                     ; chat, agent and document
          trace generate --requests 0                     ; above 0
          trace merge x --to csv                          ; mooncake, bailian or ucm
          calc --tokens 0                                 ; 1 or more
          """)
  void everyMistakeSaysWhatToDo(String arguments, String expected) {
    CommandRun.Ended ended = CommandRun.run((Object[]) arguments.split(" "));
    assertThat(ended.exitCode()).as(ended.all()).isEqualTo(2);
    assertThat(ended.err()).contains(expected).doesNotContain("\tat ");
  }

  @Test
  void saysThatThereIsNoRowForCsv() throws IOException {
    Path empty =
        Files.writeString(
            folder.resolve("short.jsonl"),
            "{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 1, \"hash_ids\": []}\n");
    Path made = generated("made.jsonl");
    for (Object[] arguments :
        new Object[][] {
          {"trace", "stat", made, "--sample=0.5", "--csv"}, {"trace", "analyze", empty, "--csv"}
        }) {
      CommandRun.Ended ended = CommandRun.run(arguments);
      assertThat(ended.exitCode()).as(ended.all()).isEqualTo(2);
      assertThat(ended.err()).contains("--csv has no row to print").doesNotContain("\tat ");
    }
  }

  @Test
  void takesTheKindsOfSessionsInAnyCase() {
    assertThat(run("trace", "generate", "--requests", 9, "--mix", "CHAT=1").out())
        .isEqualTo(run("trace", "generate", "--requests", 9, "--mix", "chat=1").out())
        .isNotEmpty();
  }

  @Test
  void leavesNoHalfWrittenTrace() throws IOException {
    Path out = folder.resolve("out.jsonl");
    CommandRun.Ended ended =
        CommandRun.run("trace", "anonymize", folder.resolve("missing"), "-o", out);
    assertThat(ended.exitCode()).isEqualTo(2);
    assertThat(ended.err()).contains("does not exist");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).isEmpty();
    }
  }

  private Path generated(String name) {
    Path file = folder.resolve(name);
    run("trace", "generate", "--requests", 400, "--mix", "chat=0.9,document=0.1", "-o", file);
    return file;
  }

  private static Object[] with(Object[] arguments, Object... more) {
    return Stream.concat(Stream.of(arguments), Stream.of(more)).toArray();
  }

  private static CommandRun.Ended run(Object... arguments) {
    CommandRun.Ended ended = CommandRun.run(arguments);
    assertThat(ended.exitCode()).as(ended.all()).isZero();
    return ended;
  }
}

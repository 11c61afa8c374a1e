package ucm.cli.capacity;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import ucm.cli.output.Figures;
import ucm.cli.output.FormattedReport;
import ucm.cli.output.Table;
import ucm.cli.trace.ReportPage;
import ucm.cli.trace.SampleNote;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceSummary;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.TierPlan;
import ucm.lite.tier.TierResult;

/** What {@code ucm trace tiers} prints. */
record TiersReport(
    KvModel kv,
    int tensorParallel,
    long blockBytes,
    TraceSummary summary,
    TierPlan plan,
    TierResult result,
    Optional<TierWorth> worth,
    Advice advice,
    Optional<Double> endurance,
    SampleNote note,
    long smallestSimulated)
    implements FormattedReport {

  private static final double SECONDS_A_DAY = 86_400;
  private static final double SECONDS_AN_HOUR = 3600;
  private static final double HOURS_A_DAY = 24;

  /** A long prompt of the sample is as long as such a tier, and drives out all that is in it. */
  private static final long FEW_BLOCKS = 64;

  /** A row: bytes of a tier that does not move any, and a capacity that there is none of, are -1. */
  private record Tier(
      String name, long capacity, long blocks, long tokens, long loaded, long written) {}

  @Override
  public void print(PrintWriter out) {
    out.println(Figures.grouped(summary.requests()) + " requests; " + cluster());
    kv.notes().forEach(note -> out.println("Note: " + note + "."));
    out.println();
    table().print(out);
    out.println();
    Table more = new Table("MORE", "");
    more.row("ideal hit rate", Figures.percent(summary.idealTokenHitRate()) + " of input tokens");
    more.row("storage written a day", days() > 0 ? Figures.gigabytes(writtenADay()) + " GB" : "-");
    more.row("drive writes a day", drivesADay());
    more.row("busiest engine", Figures.fixed(result.imbalance(), 2) + " times the mean");
    more.row(
        "knee of the curve",
        Figures.gigabytes((double) advice.kneeBytes())
            + " GB: more than that brings less than its share");
    more.print(out);
    worth.ifPresent(found -> printWorth(out, found));
    out.println();
    List<String> warnings = warnings();
    warnings.forEach(warning -> out.println("Warning: " + warning + "."));
    if (!warnings.isEmpty()) {
      out.println();
    }
    if (!note.exact()) {
      out.println(sampled());
      out.println();
    }
    out.println("# Suggested configuration; fill in the folder.");
    out.print(advice.yaml());
    out.flush();
  }

  private String sampled() {
    String times =
        note.simulated() < 1
            ? " Times need whole requests, which a sample of blocks does not have: "
                + advice.breakEvenTokens().map(_ -> breakEven() + ".").orElse("none are simulated.")
            : "";
    String few =
        note.simulated() < 1 && smallestSimulated < FEW_BLOCKS
            ? " The smallest tier is "
                + smallestSimulated
                + " blocks of the sample, so few that hits may be off by many points: take a larger"
                + " sample or heap."
            : "";
    return note.text("tiers and bytes", "ideal hit rate and knee") + few + times;
  }

  private String cluster() {
    return String.format(
        "KV cache of %s, %s bytes a block of %s tokens; %s node(s) of %s engine(s) of %s GPU(s)",
        kv.name(),
        Figures.grouped(blockBytes),
        summary.blockTokens(),
        plan.nodes(),
        plan.ranksPerNode(),
        tensorParallel);
  }

  private double days() {
    return summary.timeSpanMillis() / 1e3 / SECONDS_A_DAY;
  }

  private List<Tier> tiers() {
    return List.of(
        new Tier(
            "HBM", plan.hbmBlocks() * plan.ranks(), result.hbmBlocks(), result.hbmTokens(), -1, -1),
        new Tier(
            "DRAM",
            plan.dramBlocks() * plan.nodes(),
            result.dramBlocks(),
            result.dramTokens(),
            result.dramBlocks(),
            result.dramWrites()),
        new Tier(
            "storage",
            storageCapacity(),
            result.storageBlocks(),
            result.storageTokens(),
            result.storageBlocks(),
            result.storageWrites()),
        new Tier(
            "computed",
            -1,
            result.computedBlocks(),
            summary.inputTokens() - result.hitTokens(),
            -1,
            -1));
  }

  private Table table() {
    Table table =
        new Table(
            "TIER",
            "CAPACITY, GB",
            "HIT BLOCKS",
            "HIT TOKENS",
            "OF INPUT",
            "GB LOADED",
            "GB WRITTEN");
    for (Tier tier : tiers()) {
      table.row(
          tier.name,
          gigabytes(tier.capacity),
          Figures.grouped(tier.blocks),
          Figures.grouped(tier.tokens),
          Figures.percent(summary.tokenHitRate(tier.tokens)),
          gigabytes(tier.loaded),
          gigabytes(tier.written));
    }
    return table;
  }

  private List<String> warnings() {
    double asked = worth.map(TierWorth::serving).map(this::gpuHoursWith).orElse(0.0);
    List<String> warnings = new ArrayList<>();
    if (days() > 0) {
      TierWarnings.gpus(asked, plan.ranks() * tensorParallel, days()).ifPresent(warnings::add);
    }
    endurance.flatMap(most -> TierWarnings.wear(drives(), most)).ifPresent(warnings::add);
    return warnings;
  }

  private double gpuHoursWith(ServingResult serving) {
    return (serving.computeSecondsWith() + serving.loadSeconds())
        * tensorParallel
        / SECONDS_AN_HOUR;
  }

  private void printWorth(PrintWriter out, TierWorth found) {
    ServingResult serving = found.serving();
    out.println();
    Table ttft = new Table("TTFT (SIMULATED COMPUTE), S", "MEAN", "P50", "P90", "P99", "MAX");
    row(ttft, "without cache", serving.ttftWithout());
    row(ttft, "with these tiers", serving.ttftWith());
    ttft.print(out);
    out.println();
    Table money = new Table("GPU TIME (SIMULATED COMPUTE)", "");
    money.row("GPU hours without cache", gpuHours(serving.computeSecondsWithout()));
    money.row("GPU hours saved", gpuHours(serving.savedSeconds()));
    money.row(
        "GPU hours saved a day", days() > 0 ? gpuHours(serving.savedSeconds() / days()) : "-");
    money.row("loading", Figures.duration(serving.loadSeconds()) + ", counted as used");
    money.row("load or recompute", breakEven());
    money.print(out);
    found.costs().ifPresent(costs -> costs.print(out));
    found
        .cheapest()
        .ifPresent(best -> out.println(System.lineSeparator() + best.sentence(blockBytes)));
  }

  private String breakEven() {
    long tokens = advice.breakEvenTokens().orElse(-1L);
    return tokens < 0
        ? "loading from storage is slower than computing: leave storage out"
        : "loading from storage pays from "
            + Figures.grouped(tokens)
            + " tokens on (load_tokens_threshold)";
  }

  private static void row(Table table, String name, Quantiles times) {
    table.row(
        name,
        Figures.fixed(times.mean(), 3),
        Figures.fixed(times.p50(), 3),
        Figures.fixed(times.p90(), 3),
        Figures.fixed(times.p99(), 3),
        Figures.fixed(times.max(), 3));
  }

  @Override
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("model", kv.name());
    data.put("block_bytes", blockBytes);
    note.addTo(data);
    data.put("plan", plan);
    data.put("summary", summary);
    data.put("tiers", result);
    data.put("dram_written_bytes", result.dramWrites() * blockBytes);
    data.put("storage_written_bytes", result.storageWrites() * blockBytes);
    if (days() > 0) {
      data.put("storage_written_bytes_a_day", writtenADay());
    }
    data.put("knee_bytes", advice.kneeBytes());
    worth.ifPresent(
        found -> {
          ServingResult serving = found.serving();
          data.put("simulated_compute", serving);
          data.put("gpu_hours_saved", serving.savedSeconds() * tensorParallel / SECONDS_AN_HOUR);
          data.put("gpu_hours_with_tiers", gpuHoursWith(serving));
          data.put("gpu_hours_available", plan.ranks() * tensorParallel * days() * HOURS_A_DAY);
          found.costs().ifPresent(costs -> data.put("costs", costs.data()));
          found.cheapest().ifPresent(best -> data.put("cheapest", best.data(blockBytes)));
        });
    if (days() > 0 && storageCapacity() > 0) {
      data.put("drive_writes_a_day", drives());
    }
    data.put("warnings", warnings());
    advice.breakEvenTokens().ifPresent(tokens -> data.put("break_even_tokens", tokens));
    data.put("yaml", advice.yaml());
    return data;
  }

  /** The tiers as rows of a table; what is computed has no capacity, and no bytes are moved for it. */
  @Override
  public List<Map<String, Object>> rows() {
    return tiers().stream().map(this::row).toList();
  }

  private Map<String, Object> row(Tier tier) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("tier", tier.name);
    row.put("capacity_bytes", Math.max(0, tier.capacity) * blockBytes);
    row.put("blocks", tier.blocks);
    row.put("tokens", tier.tokens);
    row.put("token_share", summary.tokenHitRate(tier.tokens));
    row.put("loaded_bytes", Math.max(0, tier.loaded) * blockBytes);
    row.put("written_bytes", Math.max(0, tier.written) * blockBytes);
    row.put("sample_rate", note.simulated());
    return row;
  }

  /** Adds the tiers, what they are worth, and the suggested configuration to a page. */
  void addTo(ReportPage page) {
    List<List<String>> facts = new ArrayList<>();
    if (days() > 0) {
      facts.add(List.of("Storage written a day", Figures.gigabytes(writtenADay()) + " GB"));
      facts.add(List.of("Drive writes a day", drivesADay()));
    }
    facts.add(
        List.of("Busiest engine", Figures.fixed(result.imbalance(), 2) + " times", "the mean"));
    worth.ifPresent(
        found -> {
          ServingResult serving = found.serving();
          page.serving(serving);
          found.costs().ifPresent(costs -> facts.addAll(costs.facts()));
          found.cheapest().ifPresent(best -> page.advice(best.sentence(blockBytes)));
          facts.add(
              List.of(
                  "GPU hours saved",
                  gpuHours(serving.savedSeconds()),
                  "of " + gpuHours(serving.computeSecondsWithout()) + ", simulated compute"));
          String load = breakEven();
          page.advice(Character.toUpperCase(load.charAt(0)) + load.substring(1) + ".");
        });
    warnings().forEach(warning -> page.advice("Warning: " + warning + "."));
    page.tiers(note.exact() ? cluster() : cluster() + ". " + sampled(), rows(), facts);
    page.yaml(yaml());
  }

  String yaml() {
    return advice.yaml();
  }

  String model() {
    return kv.name();
  }

  private long storageCapacity() {
    return TierCosts.storageBlocks(plan);
  }

  private double writtenADay() {
    return (double) result.storageWrites() * blockBytes / days();
  }

  private String drivesADay() {
    return days() > 0 && storageCapacity() > 0 ? Figures.fixed(drives(), 2) : "-";
  }

  private double drives() {
    double capacity = (double) storageCapacity() * blockBytes;
    return days() > 0 && capacity > 0 ? writtenADay() / capacity : 0;
  }

  private String gpuHours(double engineSeconds) {
    return Figures.fixed(engineSeconds * tensorParallel / SECONDS_AN_HOUR, 2);
  }

  private String gigabytes(long blocks) {
    return blocks < 0 ? "-" : Figures.gigabytes((double) blocks * blockBytes);
  }
}

package ucm.cli.capacity;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import ucm.cli.capacity.TierCosts.Cheapest;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Table;
import ucm.cli.trace.ReportPage;
import ucm.cli.trace.SampleNote;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceSummary;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.TierPlan;
import ucm.lite.tier.TierResult;

/**
 * What {@code ucm trace tiers} prints.
 *
 * @param gpus of an engine
 * @param kneeBytes the capacity from which on more of it brings less than its share
 * @param breakEven the shortest prefix that is loaded faster than it is computed; -1 when none is;
 *     empty when no rate of computing was given
 * @param yaml a configuration of the stores with the simulated sizes
 */
record TiersReport(
    KvModel kv,
    int gpus,
    long blockBytes,
    TraceSummary summary,
    TierPlan plan,
    TierResult result,
    Optional<Worth> worth,
    long kneeBytes,
    Optional<Long> breakEven,
    String yaml,
    Optional<Double> endurance,
    SampleNote note,
    long smallestSimulated)
    implements FormatOptions.Report {

  private static final double SECONDS_AN_HOUR = 3600;
  private static final double HOURS_A_DAY = 24;

  /** A long prompt of the sample is as long as such a tier, and drives out all that is in it. */
  private static final long FEW_BLOCKS = 64;

  /**
   * What tiers are worth: in time, in money with prices unless the trace takes no time, and the capacity to
   * buy where a time to first token was asked for.
   */
  record Worth(ServingResult serving, Optional<TierCosts> costs, Optional<Cheapest> cheapest) {}

  /** A row in blocks, but for tokens; -1 for a capacity, and for writes, that there are none of. */
  private record Tier(String name, long capacity, long blocks, long tokens, long written) {

    /** Blocks are loaded from where they are written to. */
    long loaded() {
      return written < 0 ? -1 : blocks;
    }
  }

  private Columns<Tier> columns() {
    return new Columns<Tier>()
        .both("TIER", "tier", Tier::name)
        .text("CAPACITY, GB", tier -> gigabytes(tier.capacity))
        .data("capacity_bytes", tier -> Math.max(0, tier.capacity) * blockBytes)
        .both("HIT BLOCKS", "blocks", Tier::blocks, Figures::grouped)
        .both("HIT TOKENS", "tokens", Tier::tokens, Figures::grouped)
        .both("OF INPUT", "token_share", t -> summary.tokenHitRate(t.tokens), Figures::percent)
        .text("GB LOADED", tier -> gigabytes(tier.loaded()))
        .data("loaded_bytes", tier -> Math.max(0, tier.loaded()) * blockBytes)
        .text("GB WRITTEN", tier -> gigabytes(tier.written))
        .data("written_bytes", tier -> Math.max(0, tier.written) * blockBytes)
        .data("sample_rate", _ -> note.simulated());
  }

  private List<Tier> tiers() {
    TierResult r = result;
    long hbm = plan.hbmBlocks() * plan.ranks();
    long dram = plan.dramBlocks() * plan.nodes();
    long disk = TierCosts.diskBlocks(plan);
    long storage = TierCosts.storageBlocks(plan);
    long computed = summary.inputTokens() - r.hitTokens();
    return Stream.of(
            new Tier("HBM", hbm, r.hbmBlocks(), r.hbmTokens(), -1),
            new Tier("DRAM", dram, r.dramBlocks(), r.dramTokens(), r.dramWrites()),
            new Tier("disk", disk, r.diskBlocks(), r.diskTokens(), r.diskWrites()),
            new Tier("storage", storage, r.storageBlocks(), r.storageTokens(), r.storageWrites()),
            new Tier("computed", -1, r.computedBlocks(), computed, -1))
        .filter(tier -> disk > 0 || !tier.name.equals("disk"))
        .toList();
  }

  @Override
  public void print(PrintWriter out) {
    out.println(Figures.grouped(summary.requests()) + " requests; " + cluster());
    kv.notes().forEach(note -> out.println("Note: " + note + "."));
    out.println();
    columns().table(tiers()).printSection(out);
    Table more = new Table("MORE", "");
    more.row("ideal hit rate", Figures.percent(summary.idealTokenHitRate()) + " of input tokens");
    more.row("storage written a day", days() > 0 ? Figures.gigabytes(writtenADay()) + " GB" : "-");
    more.row("drive writes a day", drivesADay());
    more.row("busiest engine", Figures.fixed(result.imbalance(), 2) + " times the mean");
    more.row(
        "knee of the curve",
        Figures.gigabytes((double) kneeBytes) + " GB: more than that brings less than its share");
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
    out.print(yaml);
    out.flush();
  }

  private String sampled() {
    String text = note.text("tiers and bytes", "ideal hit rate and knee");
    if (note.simulated() == 1) {
      return text;
    }
    if (smallestSimulated < FEW_BLOCKS) {
      text +=
          String.format(
              " The smallest tier is %s blocks of the sample, so few that hits may be off by many"
                  + " points: take a larger sample or heap.",
              smallestSimulated);
    }
    return String.format(
        "%s Times need whole requests, which a sample of blocks does not have: %s.",
        text, breakEven.isPresent() ? breakEvenText() : "none are simulated");
  }

  private String cluster() {
    return String.format(
        "KV cache of %s, %s bytes a block of %s tokens; %s node(s) of %s engine(s) of %s GPU(s)",
        kv.name(),
        Figures.grouped(blockBytes),
        summary.blockTokens(),
        plan.nodes(),
        plan.ranksPerNode(),
        gpus);
  }

  private double days() {
    return TierCosts.days(summary);
  }

  /** What the figures do not show by themselves; sentences without their end. */
  private List<String> warnings() {
    double asked = worth.map(found -> gpuHoursWith(found.serving)).orElse(0.0);
    double hours = days() * HOURS_A_DAY;
    int all = plan.ranks() * gpus;
    List<String> warnings = new ArrayList<>();
    // Requests do not wait for each other in the simulation, which holds while there are enough
    // GPUs.
    if (days() > 0 && asked > all * hours) {
      warnings.add(
          String.format(
              "with these tiers the trace asks for %s GPU hours within %s hours, and %s GPU(s) give"
                  + " %s: requests would wait for each other, and the times to first token do not"
                  + " hold; simulate more --nodes, --ranks or --tp",
              Figures.fixed(asked, 2),
              Figures.fixed(hours, 2),
              all,
              Figures.fixed(all * hours, 2)));
    }
    endurance
        .filter(most -> drives() > most)
        .ifPresent(
            most ->
                warnings.add(
                    String.format(
                        "the trace writes the drives %s times a day, and they endure %s"
                            + " (--endurance): take more --storage or --disk, drives that endure"
                            + " more, or --write on-eviction",
                        Figures.fixed(drives(), 2), Figures.fixed(most, 2))));
    return warnings;
  }

  private double gpuHoursWith(ServingResult serving) {
    return (serving.computeSecondsWith() + serving.loadSeconds()) * gpus / SECONDS_AN_HOUR;
  }

  private void printWorth(PrintWriter out, Worth found) {
    ServingResult serving = found.serving;
    out.println();
    Table ttft = new Table("TTFT (SIMULATED COMPUTE), S", "MEAN", "P50", "P90", "P99", "MAX");
    ttft.row(times("without cache", serving.ttftWithout()));
    ttft.row(times("with these tiers", serving.ttftWith()));
    ttft.printSection(out);
    Table money = new Table("GPU TIME (SIMULATED COMPUTE)", "");
    money.row("GPU hours without cache", gpuHours(serving.computeSecondsWithout()));
    money.row("GPU hours saved", gpuHours(serving.savedSeconds()));
    money.row(
        "GPU hours saved a day", days() > 0 ? gpuHours(serving.savedSeconds() / days()) : "-");
    money.row("loading", Figures.duration(serving.loadSeconds()) + ", counted as used");
    money.row("load or recompute", breakEvenText());
    money.print(out);
    found.costs.ifPresent(
        costs -> {
          out.println();
          costs.table().print(out);
        });
    found.cheapest.ifPresent(
        best -> {
          out.println();
          out.println(best.sentence(blockBytes));
        });
  }

  private static String[] times(String name, Quantiles times) {
    DoubleStream seconds =
        DoubleStream.of(times.mean(), times.p50(), times.p90(), times.p99(), times.max());
    return Stream.concat(Stream.of(name), seconds.mapToObj(value -> Figures.fixed(value, 3)))
        .toArray(String[]::new);
  }

  private String breakEvenText() {
    long tokens = breakEven.orElse(-1L);
    return tokens < 0
        ? "loading from storage is slower than computing: leave storage out"
        : "loading from storage pays from "
            + Figures.grouped(tokens)
            + " tokens on (load_tokens_threshold)";
  }

  @Override
  public Fields data() {
    Fields data = new Fields().with("model", kv.name()).with("block_bytes", blockBytes);
    note.addTo(data)
        .with("plan", plan)
        .with("summary", summary)
        .with("tiers", result)
        .with("dram_written_bytes", result.dramWrites() * blockBytes)
        .with("disk_written_bytes", result.diskWrites() * blockBytes)
        .with("storage_written_bytes", result.storageWrites() * blockBytes);
    if (days() > 0) {
      data.put("storage_written_bytes_a_day", writtenADay());
    }
    data.put("knee_bytes", kneeBytes);
    worth.ifPresent(
        found -> {
          double saved = found.serving.savedSeconds() * gpus / SECONDS_AN_HOUR;
          data.with("simulated_compute", found.serving)
              .with("gpu_hours_saved", saved)
              .with("gpu_hours_with_tiers", gpuHoursWith(found.serving))
              .with("gpu_hours_available", plan.ranks() * gpus * days() * HOURS_A_DAY);
          found.costs.ifPresent(costs -> data.put("costs", costs.data()));
          found.cheapest.ifPresent(best -> data.put("cheapest", best.data(blockBytes)));
        });
    if (drives() > 0) {
      data.put("drive_writes_a_day", drives());
    }
    data.put("warnings", warnings());
    breakEven.ifPresent(tokens -> data.put("break_even_tokens", tokens));
    return data.with("yaml", yaml);
  }

  /** The tiers as rows of a table; what is computed has no capacity, and no bytes are moved for it. */
  @Override
  public List<Fields> rows() {
    return columns().data(tiers());
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
          ServingResult serving = found.serving;
          page.serving(serving);
          found.costs.ifPresent(costs -> facts.addAll(costs.facts()));
          found.cheapest.ifPresent(best -> page.advice(best.sentence(blockBytes)));
          facts.add(
              List.of(
                  "GPU hours saved",
                  gpuHours(serving.savedSeconds()),
                  "of " + gpuHours(serving.computeSecondsWithout()) + ", simulated compute"));
          String load = breakEvenText();
          page.advice(Character.toUpperCase(load.charAt(0)) + load.substring(1) + ".");
        });
    warnings().forEach(warning -> page.advice("Warning: " + warning + "."));
    page.tiers(note.exact() ? cluster() : cluster() + ". " + sampled(), rows(), facts);
    page.yaml(yaml);
  }

  private double writtenADay() {
    return (double) result.storageWrites() * blockBytes / days();
  }

  private String drivesADay() {
    return drives() > 0 ? Figures.fixed(drives(), 2) : "-";
  }

  /** How often a day the drives that are written most are written whole. */
  private double drives() {
    return Math.max(
        drives(result.storageWrites(), TierCosts.storageBlocks(plan)),
        drives(result.diskWrites(), TierCosts.diskBlocks(plan)));
  }

  private double drives(long writes, long capacity) {
    return days() > 0 && capacity > 0 ? writes / (double) capacity / days() : 0;
  }

  private String gpuHours(double engineSeconds) {
    return Figures.fixed(engineSeconds * gpus / SECONDS_AN_HOUR, 2);
  }

  private String gigabytes(long blocks) {
    return blocks < 0 ? "-" : Figures.gigabytes((double) blocks * blockBytes);
  }
}

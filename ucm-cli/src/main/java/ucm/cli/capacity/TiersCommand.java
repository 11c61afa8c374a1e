package ucm.cli.capacity;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.trace.AnalyzeCommand;
import ucm.cli.trace.HtmlReport;
import ucm.cli.trace.ReportPage;
import ucm.cli.trace.SampleNote;
import ucm.cli.trace.SampleOptions;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.insight.TraceInsights;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.SampleScale;
import ucm.lite.tier.ServingPlan;
import ucm.lite.tier.ServingResult;
import ucm.lite.tier.ServingSimulation;
import ucm.lite.tier.TierPlan;
import ucm.lite.tier.TierResult;
import ucm.lite.tier.TierSimulation;
import ucm.lite.tier.TraceSample;
import ucm.lite.trace.TraceReadReport;

/** {@code ucm trace tiers}: what HBM, DRAM and storage of a cluster would hit, and what it saves. */
@Command(
    name = "tiers",
    description = {
      "Simulates KV caches in HBM, DRAM and storage of a cluster over a trace: what each tier hits,"
          + " the bytes moved, and how fast storage wears.",
      "",
      "With --gpu, --tflops or --prefill-rate also what that is worth: time to first token, GPU"
          + " hours, and from which prefix on loading beats computing. These times are simulated,"
          + " not measured: requests do not wait for each other, and a load does not overlap with"
          + " computing.",
      "",
      "With prices also what that costs a month: as many GPU hours as the trace computes and loads,"
          + " and the capacities of DRAM and storage.",
      "",
      "Memory is bounded: a trace with more distinct blocks than fit is simulated on a sample of"
          + " its blocks, with tiers that are smaller by the same rate, and the output says so."
          + " Times need whole requests and are left out then."
    })
public final class TiersCommand extends CliCommand {

  /** What is recorded and simulated may take a sixth of the heap. */
  private static final int HEAP_PARTS = 6;

  private static final double MILLIS_A_DAY = 86_400_000;

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private ModelOptions models = new ModelOptions();
  @Mixin private ClusterOptions cluster = new ClusterOptions();
  @Mixin private ServingOptions serving = new ServingOptions();
  @Mixin private PriceOptions priceOptions = new PriceOptions();
  @Mixin private SampleOptions sample = new SampleOptions();

  @Option(
      names = "--touch",
      paramLabel = "ORDER",
      defaultValue = "leaf_last",
      description = "order in which a prompt's blocks are touched: leaf_last or root_last")
  private TouchOrder touchOrder = TouchOrder.LEAF_LAST;

  @Option(names = "--yaml", description = "print only the suggested configuration")
  private boolean yaml;

  @Option(names = "--html", paramLabel = "FILE", description = AnalyzeCommand.HTML_HELP)
  private @Nullable Path html;

  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() throws InterruptedException {
    KvModel model = models.required();
    Optional<ServingPlan> plan = serving.plan(model, models.tensorParallel());
    // Checked before a long trace is read.
    Optional<TierPrices> prices = priceOptions.prices(cluster, plan.isPresent());
    TierPlan caches = cluster.plan(1);
    TraceAnalyzer analyzer = new TraceAnalyzer(sample.analysis());
    format.check();
    long bound = SampleOptions.blocksIn(HEAP_PARTS, TierSimulation.bytesABlock(caches));
    try (TraceSample trace = new TraceSample(sample.bounded(bound))) {
      PrintWriter err = err();
      TraceReadReport read = inputs.read("requests", err, analyzer.andThen(trace));
      TraceAnalysis analysis = analyzer.finish();
      sample.warn(err, trace.rate());
      TiersReport report = report(model, plan, prices, analysis, trace);
      PrintWriter out = out();
      if (html != null) {
        HtmlReport.write(html, page(report, read, analysis, trace), out);
      }
      if (yaml) {
        out.print(report.yaml());
        out.flush();
      } else {
        format.print(out, report);
      }
    }
  }

  private static Map<String, Object> page(
      TiersReport report, TraceReadReport read, TraceAnalysis analysis, TraceSample trace)
      throws InterruptedException {
    ReportPage page =
        new ReportPage(read, analysis, report.model(), report.blockBytes(), Instant.now());
    if (trace.whole()) {
      page.insights(TraceInsights.of(trace.recorded()));
    }
    report.addTo(page);
    return page.data();
  }

  private TiersReport report(
      KvModel model,
      Optional<ServingPlan> plan,
      Optional<TierPrices> prices,
      TraceAnalysis analysis,
      TraceSample trace)
      throws InterruptedException {
    long blockBytes =
        model.storedBytesPerToken(models.tensorParallel())
            * Math.max(1, analysis.summary().blockTokens());
    TierPlan tiers = cluster.plan(blockBytes);
    TierResult result;
    Optional<TierWorth> worth = Optional.empty();
    if (plan.isPresent() && trace.whole()) {
      ServingSimulation.Result both =
          ServingSimulation.run(trace.recorded(), tiers, touchOrder, plan.get());
      result = both.tiers();
      worth =
          Optional.of(
              worth(plan.get(), prices, tiers, blockBytes, both.serving(), analysis, trace));
    } else {
      SampleScale scale = trace.scale();
      result =
          scale.estimate(
              TierSimulation.run(trace.recorded(), scale.plan(tiers), touchOrder), tiers);
    }
    Advice advice =
        new Advice(
            tiers.ranksPerNode() * models.tensorParallel(),
            cluster,
            analysis.lru(touchOrder).kneeCapacity() * blockBytes,
            plan.map(p -> p.breakEvenTokens(Math.max(1, analysis.summary().blockTokens()))));
    return new TiersReport(
        model,
        models.tensorParallel(),
        blockBytes,
        analysis.summary(),
        tiers,
        result,
        worth,
        advice,
        priceOptions.endurance(),
        new SampleNote(trace.rate(), analysis.lru(touchOrder).sampleRate()),
        trace.scale().plan(tiers).smallestTier());
  }

  private TierWorth worth(
      ServingPlan engines,
      Optional<TierPrices> prices,
      TierPlan tiers,
      long blockBytes,
      ServingResult serving,
      TraceAnalysis analysis,
      TraceSample trace)
      throws InterruptedException {
    double days = analysis.summary().timeSpanMillis() / MILLIS_A_DAY;
    if (prices.isEmpty() || days <= 0) {
      return new TierWorth(serving, Optional.empty(), Optional.empty());
    }
    Function<CheapestTiers.Candidate, TierCosts> costs =
        tried ->
            TierCosts.of(
                prices.get(),
                tried.plan(),
                blockBytes,
                models.tensorParallel(),
                tried.serving(),
                days);
    Optional<CheapestTiers> cheapest = Optional.empty();
    if (priceOptions.ttft().isPresent()) {
      double wanted = priceOptions.ttft().get();
      cheapest =
          Optional.of(
              CheapestTiers.find(wanted, trace.recorded(), tiers, touchOrder, engines, costs));
    }
    return new TierWorth(
        serving, Optional.of(costs.apply(new CheapestTiers.Candidate(tiers, serving))), cheapest);
  }
}

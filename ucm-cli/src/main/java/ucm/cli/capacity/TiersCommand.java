package ucm.cli.capacity;

import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.capacity.TierCosts.Cheapest;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.trace.AnalyzeCommand;
import ucm.cli.trace.ReportPage;
import ucm.cli.trace.SampleNote;
import ucm.cli.trace.SampleOptions;
import ucm.cli.trace.TraceInputOptions;
import ucm.lite.curve.LruCurve;
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

/** {@code ucm trace tiers}: what HBM, DRAM, disks and storage of a cluster would hit, and what it saves. */
@Command(
    name = "tiers",
    description = {
      "Simulates KV caches in HBM, DRAM, local disks and storage of a cluster over a trace: what"
          + " each tier hits, the bytes moved, and how fast storage wears.",
      "",
      "With --gpu, --tflops or --prefill-rate also what that is worth: time to first token, GPU"
          + " hours, and from which prefix on loading beats computing. These times are simulated,"
          + " not measured: requests do not wait for each other, and a load does not overlap with"
          + " computing.",
      "",
      "With prices also what that costs a month: as many GPU hours as the trace computes and loads,"
          + " and the capacities of DRAM, disks and storage.",
      "",
      "Memory is bounded: a trace with more distinct blocks than fit is simulated on a sample of"
          + " its blocks, with tiers that are smaller by the same rate, and the output says so."
          + " Times need whole requests and are left out then."
    })
public final class TiersCommand extends CliCommand {

  /** What is recorded and simulated may take a sixth of the heap. */
  private static final int HEAP_PARTS = 6;

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private ModelOptions models = new ModelOptions();
  @Mixin private ClusterOptions cluster = new ClusterOptions();
  @Mixin private ServingOptions serving = new ServingOptions();
  @Mixin private PriceOptions prices = new PriceOptions();
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
    Optional<ServingPlan> engines = serving.plan(model, models.tensorParallel());
    // Checked before a long trace is read.
    prices.check(cluster, engines.isPresent());
    TierPlan caches = cluster.plan(1);
    TraceAnalyzer analyzer = new TraceAnalyzer(sample.analysis());
    format.check();
    long bound = SampleOptions.blocksIn(HEAP_PARTS, TierSimulation.bytesABlock(caches));
    try (TraceSample trace = new TraceSample(sample.bounded(bound))) {
      TraceReadReport read = inputs.read(analyzer.andThen(trace));
      TraceAnalysis analysis = analyzer.finish();
      sample.warn(err(), trace.rate());
      TiersReport report = report(model, engines, analysis, trace);
      if (html != null) {
        ReportPage page = new ReportPage(read, analysis, model.name(), report.blockBytes());
        if (trace.whole()) {
          page.insights(TraceInsights.of(trace.recorded()));
        }
        report.addTo(page);
        page.write(html, out());
      }
      if (yaml) {
        out().print(report.yaml());
        out().flush();
      } else {
        format.print(out(), report);
      }
    }
  }

  private TiersReport report(
      KvModel model, Optional<ServingPlan> engines, TraceAnalysis analysis, TraceSample trace)
      throws InterruptedException {
    int gpus = models.tensorParallel();
    int blockTokens = Math.max(1, analysis.summary().blockTokens());
    long blockBytes = model.storedBytesPerToken(gpus) * blockTokens;
    TierPlan tiers = cluster.plan(blockBytes);
    SampleScale scale = trace.scale();
    TierResult result;
    Optional<TiersReport.Worth> worth = Optional.empty();
    if (engines.isPresent() && trace.whole()) {
      ServingSimulation.Result both =
          ServingSimulation.run(trace.recorded(), tiers, touchOrder, engines.get());
      result = both.tiers();
      double days = TierCosts.days(analysis.summary());
      TierCosts.Basis basis = new TierCosts.Basis(prices, blockBytes, gpus, days);
      worth = Optional.of(worth(both.serving(), basis, tiers, engines.get(), trace));
    } else {
      result =
          scale.estimate(
              TierSimulation.run(trace.recorded(), scale.plan(tiers), touchOrder), tiers);
    }
    Optional<Long> breakEven = engines.map(plan -> plan.breakEvenTokens(blockTokens));
    LruCurve curve = analysis.lru(touchOrder);
    return new TiersReport(
        model,
        gpus,
        blockBytes,
        analysis.summary(),
        tiers,
        result,
        worth,
        curve.kneeCapacity() * blockBytes,
        breakEven,
        cluster.yaml(tiers.ranksPerNode() * gpus, breakEven),
        Optional.ofNullable(prices.endurance),
        new SampleNote(trace.rate(), curve.sampleRate()),
        scale.plan(tiers).smallestTier());
  }

  private TiersReport.Worth worth(
      ServingResult found,
      TierCosts.Basis basis,
      TierPlan tiers,
      ServingPlan engines,
      TraceSample trace)
      throws InterruptedException {
    if (!prices.given() || basis.days() <= 0) {
      return new TiersReport.Worth(found, Optional.empty(), Optional.empty());
    }
    Optional<Cheapest> cheapest = Optional.empty();
    Double wanted = prices.ttft;
    if (wanted != null) {
      cheapest =
          Optional.of(Cheapest.find(wanted, trace.recorded(), tiers, touchOrder, engines, basis));
    }
    return new TiersReport.Worth(found, Optional.of(basis.of(tiers, found)), cheapest);
  }
}

package ucm.cli.trace;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.OutputFile;
import ucm.cli.output.UsageException;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.insight.TraceInsights;
import ucm.lite.policy.PolicyHits;
import ucm.lite.policy.PolicySimulation;
import ucm.lite.policy.SimulatedPolicy;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.SampleScale;
import ucm.lite.tier.TraceSample;
import ucm.lite.trace.TraceReadReport;

/** {@code ucm trace analyze}: the hit rate of caches of every size on a trace. */
@Command(
    name = "analyze",
    description = {
      "Prints what a trace holds and the hit rate of an LRU cache at several capacities, in one"
          + " pass and exact unless a sample is asked for.",
      "A hit is a block of the unbroken run from the prompt's first block that is in the cache when"
          + " the request arrives; all blocks of the request are touched afterwards.",
      "",
      "Memory is bounded: a trace with more distinct blocks than half of the heap has room for is"
          + " analysed from a sample, and the output says so."
    })
public final class AnalyzeCommand extends CliCommand {

  public static final String HTML_HELP =
      "also write a report with charts: one file that needs no network" + OutputFile.REPLACES;

  @Mixin private TraceInputOptions inputs = new TraceInputOptions();
  @Mixin private ModelOptions models = new ModelOptions();

  @Option(
      names = {"--capacities", "--capacity"},
      split = ",",
      paramLabel = "SIZE",
      description =
          "capacities: "
              + CapacityList.HELP
              + " (default: 1 to 150,000 blocks; 3 and 50 million tokens; 1%% to 100%%)")
  private List<String> capacities = List.of();

  @Option(
      names = "--policies",
      split = ",",
      paramLabel = "NAME",
      description =
          "simulate these policies at the capacities: fifo, lru, s3-fifo, opt (Belady's bound), or"
              + " all")
  private List<String> policies = List.of();

  @Option(
      names = "--touch",
      paramLabel = "ORDER",
      defaultValue = "leaf_last",
      description =
          "order in which simulated policies touch a prompt's blocks: leaf_last or root_last"
              + " (default: ${DEFAULT-VALUE})")
  private TouchOrder touchOrder = TouchOrder.LEAF_LAST;

  @Mixin private SampleOptions sample = new SampleOptions();

  @Option(
      names = "--compare",
      description = "with --sample or --sample-size: compute the exact curve too, and the error")
  private boolean compare;

  @Option(names = "--html", paramLabel = "FILE", description = HTML_HELP)
  private @Nullable Path html;

  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() throws InterruptedException {
    CapacityList chosen = new CapacityList(capacities);
    List<SimulatedPolicy> simulated = chosenPolicies();
    Optional<KvModel> model = models.model();
    UsageException.when(
        chosen.needsModel() && model.isEmpty(),
        "capacities in bytes need --model or --model-config");
    format.check();
    AnalysisOptions options = options(!simulated.isEmpty());
    TraceAnalyzer analyzer = new TraceAnalyzer(options);
    List<PolicyHits> hits = List.of();
    Optional<TraceInsights> insights = Optional.empty();
    TraceReadReport read;
    TraceAnalysis analysis;
    long blockBytes;
    long[] blocks;
    // For traces that are too large for all of their blocks.
    try (TraceSample part =
        options.exact() || simulated.isEmpty()
            ? null
            : new TraceSample(sample.bounded(Integer.MAX_VALUE))) {
      read = inputs.read(part == null ? analyzer : analyzer.andThen(part));
      analysis = analyzer.finish();
      if (!analysis.exact()) {
        sample.warn(err(), analysis.lru(touchOrder).sampleRate());
      }
      blockBytes =
          model.map(kv -> kv.storedBytesPerToken(models.tensorParallel())).orElse(0L)
              * analysis.summary().blockTokens();
      blocks = chosen.blocks(analysis.summary(), blockBytes);
      if (part != null) {
        hits = estimate(part, simulated, blocks);
      } else if (options.recording() && (analysis.exact() || !simulated.isEmpty())) {
        // What a trace that is too large lacks on the page is no reason to fail; simulations that
        // were asked for are.
        try (RecordedTrace trace = analyzer.recorded()) {
          hits = simulation(trace).run(simulated, blocks);
          insights = html == null ? Optional.empty() : Optional.of(TraceInsights.of(trace));
        }
      }
    }
    if (html != null) {
      String name = model.map(KvModel::name).orElse("");
      ReportPage page = new ReportPage(read, analysis, name, blockBytes);
      page.policies(hits);
      insights.ifPresent(page::insights);
      page.write(html, out());
    }
    format.print(
        out(), new AnalyzeReport(read, analysis, model, blockBytes, blocks, hits, touchOrder));
  }

  /** Simulates policies on a sample of the blocks; the hits are those estimated for the capacities. */
  private List<PolicyHits> estimate(
      TraceSample part, List<SimulatedPolicy> simulated, long[] capacities)
      throws InterruptedException {
    SampleScale scale = part.scale();
    long[] scaled = Arrays.stream(capacities).map(scale::capacity).toArray();
    List<PolicyHits> estimates = new ArrayList<>();
    for (PolicyHits hits : simulation(part.recorded()).run(simulated, scaled)) {
      long capacity = capacities[estimates.size() % capacities.length];
      estimates.add(new PolicyHits(hits.policy(), scale.estimate(hits.hits(), capacity)));
    }
    return estimates;
  }

  private PolicySimulation simulation(RecordedTrace trace) {
    return new PolicySimulation(trace, touchOrder, Runtime.getRuntime().availableProcessors());
  }

  private AnalysisOptions options(boolean simulating) {
    UsageException.when(compare && !sample.asked(), "--compare needs --sample or --sample-size");
    AnalysisOptions options =
        compare ? sample.exactAnalysis().withSampling(sample.asSaid()) : sample.analysis();
    boolean recording = simulating || html != null;
    return recording && options.exact() ? options.withRecording() : options;
  }

  private List<SimulatedPolicy> chosenPolicies() {
    if (policies.stream().anyMatch(name -> name.equalsIgnoreCase("all"))) {
      return List.of(SimulatedPolicy.values());
    }
    return policies.stream().map(AnalyzeCommand::policy).distinct().toList();
  }

  private static SimulatedPolicy policy(String name) {
    return SimulatedPolicy.of(name)
        .orElseThrow(
            () ->
                new UsageException(
                    String.format(
                        "no policy %s is known; known are fifo, lru, s3-fifo, opt and all", name)));
  }
}

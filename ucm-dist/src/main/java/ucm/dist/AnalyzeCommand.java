package ucm.dist;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import ucm.lite.AnalysisOptions;
import ucm.lite.CachePolicy;
import ucm.lite.KvModel;
import ucm.lite.PolicyHits;
import ucm.lite.PolicySimulation;
import ucm.lite.RecordedTrace;
import ucm.lite.Sampling;
import ucm.lite.TouchOrder;
import ucm.lite.TraceAnalysis;
import ucm.lite.TraceAnalyzer;
import ucm.lite.TraceException;
import ucm.lite.TraceReadReport;

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
final class AnalyzeCommand implements Runnable {

  @Spec private CommandSpec spec;
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
          "simulate these policies at the capacities: fifo, lru, lfu, s3-fifo, arc, prefix-lru"
              + " (leaves first), opt (Belady's bound), or all")
  private List<String> policies = List.of();

  @Option(
      names = "--touch",
      paramLabel = "ORDER",
      defaultValue = "leaf_last",
      description =
          "order in which simulated policies touch a prompt's blocks: leaf_last or root_last"
              + " (default: ${DEFAULT-VALUE})")
  private TouchOrder touchOrder = TouchOrder.LEAF_LAST;

  @Option(
      names = "--sample",
      paramLabel = "RATE",
      description = "estimate the curve from this share of the blocks (SHARDS), 0.01 for example")
  private double sampleRate;

  @Option(
      names = "--sample-size",
      paramLabel = "BLOCKS",
      description = "estimate the curve from at most this many blocks (fixed-size SHARDS)")
  private int sampleSize;

  @Option(
      names = "--compare",
      description = "with --sample or --sample-size: compute the exact curve too, and the error")
  private boolean compare;

  @Option(
      names = "--max-blocks",
      paramLabel = "N",
      description =
          "most distinct blocks to analyse exactly (default: what half of the heap holds)")
  private int maxBlocks = AnalysisOptions.DEFAULT.maxUniqueBlocks();

  @Option(names = "--json", description = "print JSON instead of tables")
  private boolean json;

  @Override
  public void run() {
    CapacityList chosen = new CapacityList(capacities);
    List<CachePolicy> simulated = chosenPolicies();
    Optional<KvModel> model = models.model();
    if (chosen.needsModel() && model.isEmpty()) {
      throw new UsageException("capacities in bytes need --model or --model-config");
    }
    TraceAnalyzer analyzer = new TraceAnalyzer(options(!simulated.isEmpty()));
    PrintWriter err = spec.commandLine().getErr();
    TraceReadReport read = inputs.read("requests", err, analyzer);
    TraceAnalysis analysis = analyzer.finish();
    if (!analysis.exact() && sampleRate == 0 && sampleSize == 0) {
      err.println(
          "ucm: more than "
              + Figures.grouped(maxBlocks)
              + " distinct blocks: all figures are estimated from a sample of "
              + Figures.percent(analysis.lru(touchOrder).sampleRate())
              + " of them; a larger heap (UCM_JAVA_OPTS=-Xmx16g) allows more");
    }
    long blockBytes =
        model.map(kv -> kv.storedBytesPerToken(models.tensorParallel())).orElse(0L)
            * analysis.summary().blockTokens();
    long[] blocks = chosen.blocks(analysis.summary(), blockBytes);
    List<PolicyHits> hits = simulate(analyzer, simulated, blocks);
    AnalyzeReport report =
        new AnalyzeReport(read, analysis, model, blockBytes, blocks, hits, touchOrder);
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      Json.print(out, report.data());
    } else {
      report.print(out);
    }
  }

  private AnalysisOptions options(boolean recording) {
    if (sampleRate != 0 && sampleSize != 0) {
      throw new UsageException("--sample and --sample-size exclude each other");
    }
    boolean sampled = sampleRate != 0 || sampleSize != 0;
    if (compare && !sampled) {
      throw new UsageException("--compare needs --sample or --sample-size");
    }
    if (sampled && recording && !compare) {
      throw new UsageException(
          "--policies simulates all blocks: leave --sample out, or add --compare");
    }
    try {
      AnalysisOptions options = AnalysisOptions.DEFAULT.withMaxUniqueBlocks(maxBlocks);
      if (sampled) {
        Sampling sampling =
            sampleSize != 0 ? Sampling.fixedSize(sampleSize) : Sampling.fixedRate(sampleRate);
        options = compare ? options.withSampling(sampling) : options.sampledOnly(sampling);
      }
      return recording ? options.withRecording() : options;
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }

  private List<CachePolicy> chosenPolicies() {
    List<CachePolicy> chosen = new ArrayList<>();
    for (String name : policies) {
      if (name.equalsIgnoreCase("all")) {
        return List.of(CachePolicy.values());
      }
      chosen.add(
          CachePolicy.of(name)
              .orElseThrow(
                  () ->
                      new UsageException(
                          "no policy "
                              + name
                              + " is known; known are fifo, lru, lfu, s3-fifo, arc, prefix-lru,"
                              + " opt and all")));
    }
    return chosen.stream().distinct().toList();
  }

  private List<PolicyHits> simulate(
      TraceAnalyzer analyzer, List<CachePolicy> simulated, long[] blocks) {
    if (simulated.isEmpty()) {
      return List.of();
    }
    try (RecordedTrace trace = analyzer.recorded()) {
      int cores = Runtime.getRuntime().availableProcessors();
      return new PolicySimulation(trace, touchOrder, cores).run(simulated, blocks);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new TraceException("the simulation was interrupted", e);
    }
  }
}

package ucm.bench;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.BenchReport;
import ucm.bench.serve.RemoteBench;
import ucm.bench.serve.ServeExperiment;
import ucm.bench.serve.ServeExperiment.Case;
import ucm.bench.serve.ServeExperiment.Load;
import ucm.bench.serve.ServeModelOptions;
import ucm.bench.serve.ServeReport;
import ucm.bench.serve.ServeSite;
import ucm.bench.serve.ServeTrace;
import ucm.bench.simulator.ComputeModel;
import ucm.bench.simulator.EnginePlan;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Fields;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PipelineOptions;
import ucm.cli.runtime.Room;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.server.client.Daemon;

/** {@code ucm bench serve}: a simulated engine that uses a real pipeline. */
@Command(
    name = "serve",
    description = {
      "Serves requests with a simulated inference engine that uses a real pipeline, and prints"
          + " the time to first token with and without UCM.",
      "",
      "The engine drives the connector as vLLM does: continuous batching, chunked prefill, paged KV"
          + " memory, preemption, tensor-parallel ranks as threads. Its compute is simulated by"
          + " waiting. Names of blocks, look-ups and the movement of bytes are real; every loaded"
          + " byte is compared.",
      "",
      "Without --trace: prompts of each length, some at once, computed in full and with 80%% of"
          + " each in the storage; those that half of the memory does not hold are left out. With"
          + " --trace: the requests of a trace, when they came. Blocks go"
          + " to new folders within the configured storage_backends, which are removed at the end."
    })
final class BenchServeCommand extends JsonCommand {

  private static final int DEFAULT_OUTPUT_TOKENS = 16;
  private static final int LEAST_TRACE_KV_TOKENS = 65_536;
  private static final int REMOTE_WARMUP = 2;

  @Mixin private ServeModelOptions model = new ServeModelOptions();
  @Mixin private MetricsOptions metrics = new MetricsOptions();
  @Mixin private PipelineOptions pipeline = new PipelineOptions();

  @Option(
      names = "--lengths",
      paramLabel = "TOKENS",
      split = ",",
      defaultValue = "2000,4000,8000,16000,32000",
      description = "tokens of the prompts (default: ${DEFAULT-VALUE})")
  private List<Integer> lengths = List.of();

  @Option(
      names = "--concurrency",
      paramLabel = "N",
      split = ",",
      defaultValue = "1,2,4,8,16",
      description = "requests at once (default: ${DEFAULT-VALUE})")
  private List<Integer> concurrencies = List.of();

  @Option(
      names = "--hit-percent",
      paramLabel = "N",
      description = "part of each prompt that is stored (default: ${DEFAULT-VALUE})")
  private int hitPercent = 80;

  @Option(
      names = "--repeat",
      paramLabel = "N",
      description = "runs of each case, of which the median is shown (default: ${DEFAULT-VALUE})")
  private int repeat = 1;

  @Option(
      names = "--output-tokens",
      paramLabel = "N",
      description = "tokens to generate (default: 16); with --trace, at most (default: no limit)")
  private @Nullable Integer outputTokens;

  @Option(
      names = "--step-tokens",
      paramLabel = "N",
      description =
          "most tokens of a step; longer prompts are computed in chunks (default:"
              + " ${DEFAULT-VALUE})")
  private int stepTokens = 8192;

  @Option(
      names = "--max-requests",
      paramLabel = "N",
      description = "most requests of a step (default: ${DEFAULT-VALUE})")
  private int maxRequests = 256;

  @Option(
      names = "--kv-tokens",
      paramLabel = "N",
      description =
          "tokens that the engine's KV memory holds; with less than all requests need, some wait or"
              + " are preempted (default: room for the largest case; with --trace, for four of the"
              + " longest request and at least 65536, or what half of the memory holds)")
  private @Nullable Integer kvTokens;

  @Option(
      names = "--prefix-cache",
      description = "keep finished prompts in KV memory as long as there is room")
  private boolean prefixCache;

  @Option(
      names = "--trace",
      paramLabel = "FILE",
      description = "a trace, plain or .gz, or a folder of them; Mooncake, Qwen-Bailian or UCM")
  private List<String> traceFiles = List.of();

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "requests of the trace to serve (default: ${DEFAULT-VALUE})")
  private int requests = 100;

  @Option(
      names = "--speed",
      paramLabel = "X",
      defaultValue = "1",
      description = "the trace's requests come this many times faster (default: ${DEFAULT-VALUE})")
  private double speed;

  @Option(
      names = "--remote",
      description =
          "time each call of an engine of one rank through a daemon that runs (ucm serve), beside"
              + " the same call in this process, with a prompt of the first of --lengths; --repeat"
              + " rounds")
  private boolean remote;

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description = "the daemon's socket (default: that of the user's daemon)")
  private @Nullable Path socket;

  @Override
  public void run() throws InterruptedException {
    requireSense();
    UcmConfig ucm = pipeline.read();
    if (ucm.settings().useLite()) {
      err()
          .println(
              "ucm: use_lite: the engine is told of no hit and computes everything; the log says"
                  + " what would have been found");
    }
    ComputeModel compute = model.compute();
    try (Cleanup cleanup = new Cleanup()) {
      if (remote) {
        remote(cleanup, ucm);
      } else if (traceFiles.isEmpty()) {
        experiment(cleanup, ucm, compute);
      } else {
        trace(cleanup, ucm, compute);
      }
    }
  }

  private void requireSense() {
    lengths.forEach(tokens -> UsageException.within("--lengths", tokens, 1, 1 << 20));
    concurrencies.forEach(count -> UsageException.within("--concurrency", count, 1, 1024));
    UsageException.within("--hit-percent", hitPercent, 0, 100);
    UsageException.within("--repeat", repeat, 1, 1000);
    UsageException.within("--output-tokens", outputTokens, 1, 1 << 20);
    UsageException.within("--step-tokens", stepTokens, 1, 1 << 24);
    UsageException.within("--max-requests", maxRequests, 1, 1 << 16);
    UsageException.within("--kv-tokens", kvTokens, 1, Integer.MAX_VALUE);
    UsageException.within("--requests", requests, 1, 1 << 24);
    UsageException.when(
        !(speed > 0 && speed <= 1e6), "--speed is above 0 and at most 1000000; found " + speed);
  }

  private void remote(Cleanup cleanup, UcmConfig ucm) throws InterruptedException {
    EngineSpec engine = model.spec();
    int tokens = lengths.getFirst();
    long blockBytes = engine.kv().blockLayout().blockSize();
    UsageException.when(engine.tpSize() > 1, "--remote measures one rank: leave --tp out");
    UsageException.when(
        tokens < engine.blockTokens(),
        "--remote needs a prompt of a block: the first of --lengths is " + tokens);
    long bytes = tokens / engine.blockTokens() * blockBytes;
    Room.inMemory("the benchmark needs", 3 * bytes, "--lengths or --bytes-per-token");
    double loadBefore = BenchReport.loadAverage();
    Path daemon = socket == null ? Daemon.defaultSocket() : socket;
    List<BenchMeasure> measures =
        new RemoteBench(cleanup, ucm, pipeline.catalog(), engine, daemon, tokens)
            .run(REMOTE_WARMUP, repeat);
    print(
        () ->
            BenchReport.addMachine(new Fields(), loadBefore)
                .with("tokens", tokens)
                .with("block_tokens", engine.blockTokens())
                .with("block_bytes", blockBytes)
                .with("measures", measures.stream().map(BenchMeasure::data).toList()),
        () -> {
          out()
              .printf(
                  Locale.ROOT,
                  "%d tokens, blocks of %d tokens and %d bytes%n",
                  tokens,
                  engine.blockTokens(),
                  blockBytes);
          BenchReport.printMeasures(out(), measures);
          BenchReport.printMachine(out(), loadBefore);
          say(
              "RATIO is the daemon's figure by the one beside it, pair by pair. A look-up"
                  + " through the daemon ends when what it found lies in the engine's slots."
                  + " memcpy is one thread's, as the engine's copy is. Every loaded byte was"
                  + " compared.");
        });
  }

  private void experiment(Cleanup cleanup, UcmConfig ucm, ComputeModel compute)
      throws InterruptedException {
    int output = outputTokens == null ? DEFAULT_OUTPUT_TOKENS : outputTokens;
    EngineSpec engine = model.spec();
    List<Load> all = new ArrayList<>();
    concurrencies.forEach(count -> lengths.forEach(each -> all.add(new Load(each, count))));
    // Where the KV memory is given, requests wait for it.
    List<Load> fitting =
        all.stream()
            .filter(
                load -> kvTokens != null || blocks(load, output, engine) <= blocksInMemory(engine))
            .toList();
    // The site says what is missing.
    List<Load> loads = fitting.isEmpty() ? all : fitting;
    List<Load> leftOut = new ArrayList<>(all);
    leftOut.removeAll(loads);
    ServeSite site =
        site(
            cleanup,
            ucm,
            engine,
            most(loads, Load::tokens) + output,
            most(loads, load -> blocks(load, output, engine)),
            most(loads, load -> (long) load.concurrency() * load.tokens()));
    ServeReport report = new ServeReport(ucm.openedPipeline().toString(), site, compute, model);
    Load warmUp = new Load(Collections.min(lengths), Collections.min(concurrencies));
    List<Case> cases =
        new ServeExperiment(site, compute, hitPercent / 100.0, output).run(loads, warmUp, repeat);
    print(
        () -> report.data(cases, leftOut, hitPercent),
        () -> report.print(out(), cases, leftOut, hitPercent));
  }

  private static long most(List<Load> loads, ToLongFunction<Load> of) {
    return loads.stream().mapToLong(of).max().orElseThrow();
  }

  /** Half of what is available, as the stages and the page cache need memory, too. */
  private static long blocksInMemory(EngineSpec engine) {
    long ofBlock = engine.tpSize() * engine.kv().blockLayout().blockSize();
    return Room.availableMemory() / 2 / ofBlock;
  }

  private static long blocks(Load load, int output, EngineSpec engine) {
    return (long) load.concurrency() * blocks(load.tokens() + output, engine);
  }

  private static long blocks(long tokens, EngineSpec engine) {
    return Math.ceilDiv(tokens, engine.blockTokens());
  }

  private void trace(Cleanup cleanup, UcmConfig ucm, ComputeModel compute)
      throws InterruptedException {
    int output = outputTokens == null ? Integer.MAX_VALUE : outputTokens;
    ServeTrace trace = ServeTrace.read(traceFiles, requests, speed, output, err());
    EngineSpec engine = model.spec();
    int longest = trace.longest();
    long wanted = blocks(Math.max(LEAST_TRACE_KV_TOKENS, 4L * longest), engine);
    long capacity = Math.max(blocks(longest, engine), blocksInMemory(engine));
    ServeSite site =
        site(cleanup, ucm, engine, longest, Math.min(wanted, capacity), trace.distinctTokens());
    ServeReport report = new ServeReport(ucm.openedPipeline().toString(), site, compute, model);
    ServeResult with = trace.serve(site, compute);
    ServeResult full = trace.computeEverything(site, compute);
    print(() -> report.data(full, with, speed), () -> report.print(out(), full, with, speed));
  }

  private ServeSite site(
      Cleanup cleanup,
      UcmConfig ucm,
      EngineSpec engine,
      long longest,
      long blocks,
      long storedTokens) {
    long given = kvTokens == null ? blocks : blocks(kvTokens, engine);
    UsageException.when(
        given < blocks(longest, engine),
        "--kv-tokens must hold the longest request, %s tokens with what it generates; found %s"
            .formatted(longest, kvTokens));
    UsageException.when(
        given > Integer.MAX_VALUE, "the largest case needs more than 2147483647 blocks");
    return new ServeSite(
        cleanup,
        ucm,
        pipeline.catalog(),
        engine,
        metrics.open(ucm, cleanup, err()),
        new EnginePlan((int) given, engine.blockTokens(), stepTokens, maxRequests, prefixCache),
        storedTokens * model.storedBytesPerToken(engine),
        traceFiles.isEmpty() ? "--lengths, --concurrency" : "--requests");
  }
}

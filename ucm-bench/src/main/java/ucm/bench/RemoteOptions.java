package ucm.bench;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.BenchReport;
import ucm.bench.serve.RemoteBench;
import ucm.cli.output.Fields;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.Room;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.server.client.Daemon;

/** {@code --remote} of {@code ucm bench serve}: what the daemon costs, call by call. */
final class RemoteOptions {

  private static final int WARMUP = 2;

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

  boolean asked() {
    return remote;
  }

  /** What was measured. */
  record Result(EngineSpec spec, int tokens, double loadBefore, List<BenchMeasure> measures) {

    Fields data() {
      return BenchReport.addMachine(new Fields(), loadBefore)
          .with("tokens", tokens)
          .with("block_tokens", spec.blockTokens())
          .with("block_bytes", spec.kv().blockLayout().blockSize())
          .with("measures", measures.stream().map(BenchMeasure::data).toList());
    }

    void print(PrintWriter out) {
      out.printf(
          Locale.ROOT,
          "%d tokens, blocks of %d tokens and %d bytes%n",
          tokens,
          spec.blockTokens(),
          spec.kv().blockLayout().blockSize());
      BenchReport.printMeasures(out, measures);
      BenchReport.printMachine(out, loadBefore);
      out.println(
          "RATIO is the daemon's figure by the one beside it, pair by pair. A look-up through the"
              + " daemon ends when what it found lies in the engine's slots. memcpy is one"
              + " thread's, as the engine's copy is. Every loaded byte was compared.");
    }
  }

  Result run(
      Cleanup cleanup,
      UcmConfig config,
      StoreCatalog catalog,
      EngineSpec spec,
      int tokens,
      int repeat)
      throws InterruptedException {
    UsageException.when(spec.tpSize() > 1, "--remote measures one rank: leave --tp out");
    UsageException.when(
        tokens < spec.blockTokens(),
        "--remote needs a prompt of a block: the first of --lengths is " + tokens);
    long bytes = tokens / spec.blockTokens() * spec.kv().blockLayout().blockSize();
    Room.inMemory("the benchmark needs", 3 * bytes, "--lengths or --bytes-per-token");
    double loadBefore = BenchReport.loadAverage();
    Path at = socket == null ? Daemon.defaultSocket() : socket;
    RemoteBench bench = new RemoteBench(cleanup, config, catalog, spec, at, tokens);
    return new Result(spec, tokens, loadBefore, bench.run(WARMUP, repeat));
  }
}

package ucm.bench.jmh;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.Sampling;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.TraceFormat;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceWriter;

/**
 * The LRU curve of a generated trace: milliseconds for one pass over it. References a second are the number
 * printed at the start over that; both touch orders are computed in the pass.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(1)
public class CurveBenchmark {
  private final List<TraceRequest> requests = TraceInput.read();
  private Path file = Path.of("");

  /** Writes the trace to a file. */
  @Setup
  public void setUp() throws IOException {
    StringBuilder lines = new StringBuilder();
    requests.forEach(new TraceWriter(TraceFormat.MOONCAKE, lines)::request);
    file = Files.writeString(Files.createTempFile("ucm-bench-", ".jsonl"), lines);
  }

  /** Removes the file. */
  @TearDown
  public void tearDown() throws IOException {
    Files.deleteIfExists(file);
  }

  /** From requests in memory. */
  @Benchmark
  public long exact() {
    return pass(AnalysisOptions.DEFAULT);
  }

  /** From requests in memory, one block of a hundred (SHARDS). */
  @Benchmark
  public long sampled() {
    return pass(AnalysisOptions.DEFAULT.sampledOnly(Sampling.fixedRate(0.01)));
  }

  /** From the file, which is mapped into memory, JSON lines included. */
  @Benchmark
  public long exactFromFile() {
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT);
    new TraceReader().read(List.of(file.toString()), analyzer);
    return hits(analyzer.finish());
  }

  /** From the same file read as a stream, as standard input is. */
  @Benchmark
  public long exactFromStream() throws IOException {
    TraceAnalyzer analyzer = new TraceAnalyzer(AnalysisOptions.DEFAULT);
    try (InputStream in = Files.newInputStream(file)) {
      new TraceReader(in).read(List.of("-"), analyzer);
    }
    return hits(analyzer.finish());
  }

  private long pass(AnalysisOptions options) {
    TraceAnalyzer analyzer = new TraceAnalyzer(options);
    for (TraceRequest request : requests) {
      analyzer.request(request);
    }
    return hits(analyzer.finish());
  }

  private static long hits(TraceAnalysis analysis) {
    return analysis.lru(TouchOrder.LEAF_LAST).at(10_000).hitBlocks();
  }
}

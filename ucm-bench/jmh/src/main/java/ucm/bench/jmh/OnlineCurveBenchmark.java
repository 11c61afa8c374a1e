package ucm.bench.jmh;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import ucm.lite.curve.AnalysisOptions;
import ucm.lite.curve.Sampling;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceAnalyzer;
import ucm.lite.trace.TraceRequest;

/**
 * What the live curve of lite mode costs a request: nanoseconds for one {@link TraceAnalyzer#request}, over
 * a trace again and again, with the sample that lite mode keeps.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(1)
public class OnlineCurveBenchmark {
  private static final int SAMPLED_BLOCKS = 8192;

  private final List<TraceRequest> requests = TraceInput.read();
  private final TraceAnalyzer curve =
      new TraceAnalyzer(AnalysisOptions.DEFAULT.sampledOnly(Sampling.fixedSize(SAMPLED_BLOCKS)));
  private int next;

  /** One request. */
  @Benchmark
  public void add() {
    curve.request(requests.get(next));
    next = (next + 1) % requests.size();
  }

  /** What is published every five seconds, while requests wait. */
  @Benchmark
  public TraceAnalysis snapshot() {
    return curve.finish();
  }
}

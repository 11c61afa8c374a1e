package ucm.bench.jmh;

import java.util.ArrayList;
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
import org.openjdk.jmh.annotations.Warmup;
import ucm.lite.curve.OnlineCurve;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceGenerator;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;

/**
 * What the live curve of lite mode costs a request: nanoseconds for one {@link OnlineCurve#add}, over
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

  private final List<TraceRequest> requests = new ArrayList<>();
  private final OnlineCurve curve = new OnlineCurve(SAMPLED_BLOCKS);
  private int next;

  /** Makes the trace, or reads the one named by {@code -Dtrace=FILE}. */
  @Setup
  public void setUp() {
    String given = System.getProperty("trace", "");
    if (given.isEmpty()) {
      new TraceGenerator(new GeneratorOptions(20_000, 1, 3, 512, 0.8, 0.05, 0.15, 8))
          .generate(requests::add);
    } else {
      new TraceReader().read(List.of(given), requests::add);
    }
    long blocks = requests.stream().mapToLong(TraceRequest::blockCount).sum();
    System.out.println("blocks a request: " + blocks / requests.size());
  }

  /** One request. */
  @Benchmark
  public void add() {
    curve.add(requests.get(next));
    next = (next + 1) % requests.size();
  }

  /** What is published every five seconds, while requests wait. */
  @Benchmark
  public OnlineCurve.Snapshot snapshot() {
    return curve.snapshot();
  }
}

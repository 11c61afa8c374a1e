package ucm.bench.jmh;

import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import ucm.pipeline.hash.BlockHasher;

/** Names of the blocks of a prompt of 32,768 tokens, 128 tokens a block: nanoseconds a token. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
public class BlockHasherBenchmark {

  private static final int TOKENS = 32_768;

  private final BlockHasher hasher = BlockHasher.of("m", 1, "torch.bfloat16");
  private final int[] tokens = new SplittableRandom(1).ints(TOKENS, 0, 151_643).toArray();

  /** Hashes the prompt. */
  @Benchmark
  @OperationsPerInvocation(TOKENS)
  public int hash() {
    return hasher.hash(tokens, 128).size();
  }
}

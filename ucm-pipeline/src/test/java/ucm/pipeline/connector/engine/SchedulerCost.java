package ucm.pipeline.connector.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.function.IntSupplier;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.TestEngines;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;

/**
 * What the scheduler side costs for a prompt of 32,768 tokens in blocks of 128: hashing alone, and a
 * whole look-up in a store that knows every block. Run by hand, on the class path of the tests; prints
 * medians, so that other work on the machine counts little.
 */
final class SchedulerCost {

  private static final int TOKENS = 32_768;
  private static final int ROUNDS = 2_000;

  private SchedulerCost() {}

  /** Measures and prints. */
  public static void main(String[] args) throws IOException {
    EngineSpec spec =
        new EngineSpec("cost", "m", "torch.bfloat16", 1, false, 128, KvLayout.uniform(1, 1));
    BlockHasher hasher = BlockHasher.of("m", 1, "torch.bfloat16");
    int[] tokens = new SplittableRandom(1).ints(TOKENS, 0, 151_643).toArray();
    measure("hash", () -> hasher.hash(tokens, 128).size());
    measureLite("matchedTokens in lite mode", spec, tokens, /* traces= */ false);
    measureLite("the same, with a trace recorded", spec, tokens, /* traces= */ true);
  }

  private static void measureLite(String what, EngineSpec spec, int[] tokens, boolean traces)
      throws IOException {
    Path folder = Files.createTempDirectory("ucm-scheduler-cost-");
    ConnectorSetup setup =
        TestEngines.setup(spec, "use_lite", true, "enable_record_traces", traces)
            .withTraces(new TraceOptions(folder, 5 << 20, 2));
    try (SchedulerConnector scheduler = setup.scheduler()) {
      measure(
          what,
          () -> {
            scheduler.finished("r");
            return scheduler.matchedTokens(PromptRequest.of("r", tokens, 1), 0);
          });
    }
  }

  private static void measure(String what, IntSupplier work) {
    long[] nanos = new long[ROUNDS];
    int sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
      long start = System.nanoTime();
      sum += work.getAsInt();
      nanos[i] = System.nanoTime() - start;
    }
    Arrays.sort(nanos);
    System.out.printf(
        Locale.ROOT,
        "%s: %.2f ns/token, %.0f us a prompt (%d)%n",
        what,
        (double) nanos[ROUNDS / 2] / TOKENS,
        nanos[ROUNDS / 2] / 1e3,
        sum);
  }
}

package ucm.bench.simulator;

import java.util.SplittableRandom;
import ucm.lite.trace.TraceRequest;

/** Made-up prompts: tokens from seeds, the same ones each time. */
public final class Prompts {

  private static final int VOCABULARY = 150_000;

  private Prompts() {}

  /** A prompt whose first tokens are those of all prompts with the same first seed. */
  public static int[] of(long prefixSeed, int prefixTokens, long seed, int tokens) {
    int[] prompt = new int[tokens];
    fill(prompt, 0, prefixTokens, prefixSeed);
    fill(prompt, prefixTokens, tokens, seed);
    return prompt;
  }

  /**
   * The prompt of a request of a trace, by its number: blocks with one id have the same tokens. What the
   * trace's blocks do not cover is this prompt's own.
   */
  public static int[] of(TraceRequest request, int number) {
    int[] prompt = new int[request.inputTokens()];
    int to = 0;
    for (int block = 0; block < request.blockCount(); block++) {
      int from = to;
      to = request.prefixTokens(block + 1);
      long id = 31 * request.blockIdHigh(block) + request.blockIdLow(block);
      fill(prompt, from, to, id);
    }
    fill(prompt, to, prompt.length, ~(long) number);
    return prompt;
  }

  private static void fill(int[] prompt, int from, int to, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (int i = from; i < to; i++) {
      prompt[i] = random.nextInt(VOCABULARY);
    }
  }
}

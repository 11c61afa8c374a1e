package ucm.lite.trace;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import ucm.api.BlockIds;

/** Small traces drawn by seed. */
public final class RandomTraces {
  static final int BLOCK_TOKENS = 16;

  private RandomTraces() {}

  /** Blocks drawn from a few ids without any structure: many duplicates within a request. */
  public static List<TraceRequest> chaotic(long seed) {
    Random random = new Random(seed);
    int universe = 1 + random.nextInt(12);
    int longest = 1 + random.nextInt(8);
    List<TraceRequest> trace = new ArrayList<>();
    for (int i = 0, requests = 1 + random.nextInt(40); i < requests; i++) {
      long[] ids = new long[random.nextInt(longest + 1)];
      for (int k = 0; k < ids.length; k++) {
        ids[k] = random.nextInt(universe);
      }
      trace.add(request(random, i, ids));
    }
    return trace;
  }

  /**
   * Conversations: a request repeats an earlier one, cut somewhere, and goes on with new blocks.
   */
  public static List<TraceRequest> conversations(long seed, int requests) {
    Random random = new Random(seed);
    List<long[]> prompts = new ArrayList<>();
    List<TraceRequest> trace = new ArrayList<>();
    long next = 0;
    for (int i = 0; i < requests; i++) {
      int back = 1 + random.nextInt(random.nextInt(3) == 0 ? i + 1 : Math.min(i + 1, 10));
      long[] earlier = back > i || random.nextInt(4) == 0 ? new long[0] : prompts.get(i - back);
      int kept = earlier.length == 0 ? 0 : random.nextInt(earlier.length + 1);
      long[] ids = new long[kept + random.nextInt(6)];
      for (int k = 0; k < ids.length; k++) {
        ids[k] = k < kept ? earlier[k] : next++;
      }
      prompts.add(ids);
      trace.add(request(random, i, ids));
    }
    return trace;
  }

  private static TraceRequest request(Random random, int number, long[] ids) {
    long[] packed = new long[2 * ids.length];
    for (int i = 0; i < ids.length; i++) {
      packed[2 * i] = ids[i] % 3 == 0 ? 7 : 0;
      packed[2 * i + 1] = ids[i];
    }
    int missing = ids.length == 0 ? 0 : random.nextInt(BLOCK_TOKENS);
    return new TraceRequest(
        1000.0 * number,
        "r" + number,
        BLOCK_TOKENS * ids.length - missing,
        random.nextInt(500),
        BLOCK_TOKENS,
        BlockIds.wrap(packed));
  }
}

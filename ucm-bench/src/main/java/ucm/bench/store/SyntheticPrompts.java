package ucm.bench.store;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import ucm.lite.trace.TraceRequest;

/**
 * Made-up traces, the same ones each time, of the kinds of use that caches of prompts meet. They say
 * how policies differ, not what a deployment will see.
 */
public final class SyntheticPrompts {

  private static final int REQUESTS = 10_000;
  private static final int BLOCK_TOKENS = 512;
  private static final int SYSTEM_PROMPTS = 8;
  private static final int SYSTEM_BLOCKS = 4;
  private static final int DOCUMENTS = 4000;

  private final Random random = new Random(42);
  private final List<TraceRequest> requests = new ArrayList<>();
  private long lastId;

  private SyntheticPrompts() {}

  /** All of them. */
  public static List<PolicyTrial> all() {
    return List.of(
        new PolicyTrial("synthetic: conversations", new SyntheticPrompts().conversations()),
        new PolicyTrial("synthetic: documents", new SyntheticPrompts().documents(false)),
        new PolicyTrial("synthetic: documents and scans", new SyntheticPrompts().documents(true)),
        new PolicyTrial("synthetic: batch in a loop", new SyntheticPrompts().loop()));
  }

  /** Conversations on a few system prompts, each turn the whole conversation so far and some more. */
  private List<TraceRequest> conversations() {
    long[][] systems = new long[SYSTEM_PROMPTS][];
    for (int i = 0; i < systems.length; i++) {
      systems[i] = append(new long[0], SYSTEM_BLOCKS);
    }
    List<long[]> open = new ArrayList<>();
    for (int i = 0; i < REQUESTS; i++) {
      boolean first = open.size() < 200 || random.nextInt(3) == 0;
      // A session that was answered lately asks sooner.
      int which = Math.max(0, open.size() - 1 - (int) (200 * random.nextExponential()));
      long[] before = first ? systems[skewed(SYSTEM_PROMPTS)] : open.remove(which);
      long[] prompt = append(before, 1 + random.nextInt(8));
      add(prompt);
      open.add(prompt);
    }
    return requests;
  }

  /** Questions about documents, some of which are asked about often; and long texts read once. */
  private List<TraceRequest> documents(boolean scans) {
    long[][] documents = new long[DOCUMENTS][];
    for (int i = 0; i < documents.length; i++) {
      documents[i] = append(new long[0], 4 + random.nextInt(24));
    }
    for (int i = 0; i < REQUESTS; i++) {
      if (scans && random.nextInt(4) == 0) {
        add(append(new long[0], 40));
      } else {
        add(append(documents[skewed(DOCUMENTS)], 1));
      }
    }
    return requests;
  }

  /** The same prompts in the same order, ten times. */
  private List<TraceRequest> loop() {
    long[][] prompts = new long[REQUESTS / 10][];
    for (int i = 0; i < prompts.length; i++) {
      prompts[i] = append(new long[0], 4 + random.nextInt(24));
    }
    for (int i = 0; i < REQUESTS; i++) {
      add(prompts[i % prompts.length]);
    }
    return requests;
  }

  private void add(long[] ids) {
    int tokens = ids.length / 2 * BLOCK_TOKENS;
    requests.add(TraceRequest.of(requests.size(), "", tokens, 0, BLOCK_TOKENS, ids));
  }

  private long[] append(long[] ids, int blocks) {
    long[] longer = new long[ids.length + 2 * blocks];
    System.arraycopy(ids, 0, longer, 0, ids.length);
    for (int i = ids.length + 1; i < longer.length; i += 2) {
      longer[i] = ++lastId;
    }
    return longer;
  }

  /** Below a bound; the probability falls with the number, as in Zipf's law with exponent 1. */
  private int skewed(int bound) {
    return Math.min(bound - 1, (int) Math.pow(bound + 1.0, random.nextDouble()) - 1);
  }
}

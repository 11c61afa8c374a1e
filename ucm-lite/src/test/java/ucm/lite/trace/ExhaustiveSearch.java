package ucm.lite.trace;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import ucm.lite.policy.NaiveS3Fifo;

/** The most prefix hits of any sequence of decisions, by trying every set that may be kept. */
public final class ExhaustiveSearch {
  private ExhaustiveSearch() {}

  /** Block ids must be small. */
  public static long mostHits(List<TraceRequest> trace, int capacity) {
    Map<Integer, Long> best = new HashMap<>(Map.of(0, 0L));
    for (TraceRequest request : trace) {
      List<Integer> blocks = NaiveS3Fifo.blocks(request);
      int asked = 0;
      for (int block : blocks) {
        asked |= 1 << block;
      }
      Map<Integer, Long> next = new HashMap<>();
      for (Map.Entry<Integer, Long> state : best.entrySet()) {
        int run = 0;
        while (run < blocks.size() && (state.getKey() >>> blocks.get(run) & 1) != 0) {
          run++;
        }
        long hits = state.getValue() + run;
        int all = state.getKey() | asked;
        for (int kept = all; ; kept = (kept - 1) & all) {
          if (Integer.bitCount(kept) <= capacity) {
            next.merge(kept, hits, Math::max);
          }
          if (kept == 0) {
            break;
          }
        }
      }
      best = next;
    }
    return best.values().stream().mapToLong(Long::longValue).max().orElse(0);
  }
}

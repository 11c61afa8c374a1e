package ucm.bench.store;

import java.util.Arrays;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.bench.measure.BenchCalls;
import ucm.bench.measure.BenchLimits;
import ucm.bench.measure.BenchLimits.Kind;
import ucm.bench.measure.BenchMeasure;

/**
 * Measures look-ups of a store, in calls of one prompt's ids: all of them known, or none. Used by one
 * thread.
 */
final class LookupBench {

  private static final String ACCESS = "access, one thread";

  private final int ids;
  private final BenchLimits limits;
  private final BenchMeasure known = measure("look-up, 100% hits", "ids/s");
  private final BenchMeasure unknown = measure("look-up, 0% hits", "ids/s");
  private final BenchMeasure prefix = measure("prefix look-up, 100% hits", "ids/s");
  // Ends at the first id, so that calls are what can be counted.
  private final BenchMeasure noPrefix = measure("prefix look-up, 0% hits", "calls/s");
  private final BenchCalls knownCalls = new BenchCalls("look-up, 100% hits", "id");
  private final BenchCalls unknownCalls = new BenchCalls("look-up, 0% hits", "id");
  private final BenchCalls prefixCalls = new BenchCalls("prefix look-up, 100% hits", "id");
  private final BenchCalls noPrefixCalls = new BenchCalls("prefix look-up, 0% hits", "call");

  /** Nothing measured yet; each round looks up this many ids of each kind, or a few more. */
  LookupBench(int ids, BenchLimits limits) {
    this.ids = ids;
    this.limits = limits;
  }

  private static BenchMeasure measure(String name, String unit) {
    return new BenchMeasure(name, unit, ACCESS);
  }

  List<BenchMeasure> measures() {
    return List.of(known, unknown, prefix, noPrefix);
  }

  List<BenchCalls> calls() {
    return List.of(knownCalls, unknownCalls, prefixCalls, noPrefixCalls);
  }

  /**
   * One round.
   *
   * @param prompt stored blocks, asked for again and again
   * @param fresh ids that are not stored, each asked for once or, by prefix, once as the first
   * @param counts whether the round counts
   */
  void round(Store store, BlockIds prompt, BlockIds fresh, boolean counts) {
    int size = prompt.size();
    int calls = Math.ceilDiv(ids, size);
    // Cut beforehand, so that what is allocated meanwhile is the store's.
    BlockIds[] parts = new BlockIds[Math.ceilDiv(fresh.size(), size)];
    Arrays.setAll(parts, i -> part(fresh, i * size, size));
    BlockIds[] starts = new BlockIds[fresh.size()];
    Arrays.setAll(starts, i -> part(fresh, i, size));
    double all =
        timed(
            counts ? knownCalls : discarded(),
            calls,
            (long) calls * size,
            call -> require(store.lookup(prompt).cardinality(), size));
    double none =
        timed(
            counts ? unknownCalls : discarded(),
            parts.length,
            fresh.size(),
            call -> require(store.lookup(parts[call]).cardinality(), 0));
    double run =
        timed(
            counts ? prefixCalls : discarded(),
            calls,
            (long) calls * size,
            call -> require(store.lookupPrefix(prompt) + 1, size));
    double noRun =
        timed(
            counts ? noPrefixCalls : discarded(),
            starts.length,
            starts.length,
            call -> require(store.lookupPrefix(starts[call]) + 1, 0));
    if (counts) {
      known.add(all, limits.get(Kind.EXISTING));
      unknown.add(none, limits.get(Kind.ABSENT));
      prefix.add(run, limits.get(Kind.EXISTING));
      noPrefix.add(noRun, limits.get(Kind.ABSENT));
    }
  }

  private interface Call {
    void run(int call);
  }

  private static BenchCalls discarded() {
    return new BenchCalls("warm-up", "id");
  }

  /** Makes some calls; returns how many items they did a second. */
  private static double timed(BenchCalls record, int calls, long items, Call call) {
    long[] nanos = new long[calls];
    long allocated = BenchCalls.allocatedNow();
    long first = System.nanoTime();
    long last = first;
    for (int i = 0; i < calls; i++) {
      call.run(i);
      long now = System.nanoTime();
      nanos[i] = now - last;
      last = now;
    }
    record.add(nanos, items, BenchCalls.allocatedNow() - allocated);
    return items * 1e9 / (last - first);
  }

  private static BlockIds part(BlockIds ids, int from, int size) {
    return ids.slice(from, Math.min(ids.size(), from + size));
  }

  private static void require(int found, int expected) {
    if (found != expected) {
      throw new StoreException(
          "a look-up found " + found + " blocks where " + expected + " are stored");
    }
  }
}

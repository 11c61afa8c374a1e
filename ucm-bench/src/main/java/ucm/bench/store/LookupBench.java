package ucm.bench.store;

import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.bench.measure.BenchCalls;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.MachineLimits;

/**
 * Measures look-ups of a store, in calls of one prompt's ids: all of them known, or none. Used by one
 * thread.
 */
final class LookupBench {

  private static final String ACCESS = "access, one thread";

  private final int ids;
  private final Kind known = new Kind("look-up, 100% hits", "ids/s", "id");
  private final Kind unknown = new Kind("look-up, 0% hits", "ids/s", "id");
  private final Kind prefix = new Kind("prefix look-up, 100% hits", "ids/s", "id");
  // Ends at the first id, so that calls are what can be counted.
  private final Kind noPrefix = new Kind("prefix look-up, 0% hits", "calls/s", "call");

  private record Kind(BenchMeasure measure, BenchCalls calls) {

    Kind(String name, String unit, String item) {
      this(new BenchMeasure(name, unit, ACCESS), new BenchCalls(name, item));
    }

    /** Looks up in some calls, each of which must find so many of the ids that it is given. */
    void time(int count, long items, double limit, int expected, IntUnaryOperator call) {
      long[] nanos = new long[count];
      long allocated = BenchCalls.allocatedNow();
      long first = System.nanoTime();
      long last = first;
      for (int i = 0; i < count; i++) {
        int found = call.applyAsInt(i);
        long now = System.nanoTime();
        nanos[i] = now - last;
        last = now;
        if (found != expected) {
          throw new StoreException(
              "a look-up found " + found + " blocks where " + expected + " are stored");
        }
      }
      calls.add(nanos, items, BenchCalls.allocatedNow() - allocated);
      measure.add(items * 1e9 / (last - first), limit);
    }
  }

  /** Nothing measured yet; each round looks up this many ids of each kind, or a few more. */
  LookupBench(int ids) {
    this.ids = ids;
  }

  List<BenchMeasure> measures() {
    return Stream.of(known, unknown, prefix, noPrefix).map(Kind::measure).toList();
  }

  List<BenchCalls> calls() {
    return Stream.of(known, unknown, prefix, noPrefix).map(Kind::calls).toList();
  }

  /** Asks for a stored prompt again and again, and for fresh ids once each, also as first of a prefix. */
  void round(Store store, BlockIds prompt, BlockIds fresh, MachineLimits machine) {
    double present = machine.access(ids, true);
    double absent = machine.access(ids, false);
    int size = prompt.size();
    int count = Math.ceilDiv(ids, size);
    // Cut beforehand, so that what is allocated meanwhile is the store's.
    BlockIds[] parts = new BlockIds[Math.ceilDiv(fresh.size(), size)];
    Arrays.setAll(parts, i -> part(fresh, i * size, size));
    BlockIds[] starts = new BlockIds[fresh.size()];
    Arrays.setAll(starts, i -> part(fresh, i, size));
    long all = (long) count * size;
    known.time(count, all, present, size, _ -> store.lookup(prompt).cardinality());
    unknown.time(parts.length, fresh.size(), absent, 0, i -> store.lookup(parts[i]).cardinality());
    prefix.time(count, all, present, size, _ -> store.lookupPrefix(prompt) + 1);
    noPrefix.time(starts.length, starts.length, absent, 0, i -> store.lookupPrefix(starts[i]) + 1);
  }

  private static BlockIds part(BlockIds ids, int from, int size) {
    return ids.slice(from, Math.min(ids.size(), from + size));
  }
}

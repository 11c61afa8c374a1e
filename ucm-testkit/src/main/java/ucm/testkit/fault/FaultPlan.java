package ucm.testkit.fault;

import java.util.BitSet;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import ucm.testkit.BlockBytes;
import ucm.testkit.fault.Fault.Call;

/**
 * Decides which fault strikes when. What is decided depends on the seed, the number of the call and
 * the item alone, and so not on how threads interleave. Planned by one thread, then thread-safe.
 */
final class FaultPlan {

  /** One fault at one kind of call. */
  private static final class Site {
    private final long seed;
    private final BitSet forced = new BitSet();
    private final AtomicLong strikes = new AtomicLong();
    private double rate;

    private Site(long seed) {
      this.seed = seed;
    }
  }

  private final long seed;
  private final Map<Call, AtomicInteger> callNumbers = new EnumMap<>(Call.class);
  private final Map<Call, Map<Fault, Site>> sites = new EnumMap<>(Call.class);

  FaultPlan(long seed) {
    this.seed = seed;
    for (Call call : Call.values()) {
      callNumbers.put(call, new AtomicInteger());
      Map<Fault, Site> ofCall = new EnumMap<>(Fault.class);
      for (Fault fault : Fault.values()) {
        if (fault.strikes(call)) {
          ofCall.put(fault, new Site(seedOf(call) + fault.name().hashCode()));
        }
      }
      sites.put(call, ofCall);
    }
  }

  long seed() {
    return seed;
  }

  void rate(Call call, Fault fault, double rate) {
    if (!(rate >= 0 && rate <= 1)) {
      throw new IllegalArgumentException("a rate is between 0 and 1; found " + rate);
    }
    site(call, fault).rate = rate;
  }

  void force(Call call, Fault fault, int number) {
    if (number < 1) {
      throw new IllegalArgumentException("the first call is number 1; found " + number);
    }
    site(call, fault).forced.set(number);
  }

  /** Counts a call. */
  int next(Call call) {
    return numberOf(call).incrementAndGet();
  }

  int calls(Call call) {
    return numberOf(call).get();
  }

  boolean isPlanned(Call call, Fault fault) {
    Site site = site(call, fault);
    return site.rate > 0 || !site.forced.isEmpty();
  }

  /** Whether a fault strikes an item (a shard, a block, or 0 for the call as a whole) of a call. */
  boolean strikes(Call call, Fault fault, int number, long item) {
    Site site = site(call, fault);
    boolean struck = site.forced.get(number) || draw(site.seed, number, item) < site.rate;
    if (struck) {
      site.strikes.incrementAndGet();
    }
    return struck;
  }

  long struck(Call call, Fault fault) {
    return site(call, fault).strikes.get();
  }

  /** A number drawn for a call, for choices that are not yes or no. */
  long draw(Call call, int number) {
    return BlockBytes.mix(seedOf(call) + number);
  }

  private static double draw(long seed, int number, long item) {
    long bits = BlockBytes.mix(BlockBytes.mix(BlockBytes.mix(seed) + number) + item);
    return (bits >>> 11) * 0x1.0p-53;
  }

  private long seedOf(Call call) {
    return BlockBytes.mix(seed + call.name().hashCode());
  }

  private AtomicInteger numberOf(Call call) {
    AtomicInteger number = callNumbers.get(call);
    if (number == null) {
      throw new AssertionError(call);
    }
    return number;
  }

  private Site site(Call call, Fault fault) {
    Map<Fault, Site> ofCall = sites.get(call);
    Site site = ofCall == null ? null : ofCall.get(fault);
    if (site == null) {
      throw new IllegalArgumentException(fault + " does not strike " + call);
    }
    return site;
  }
}

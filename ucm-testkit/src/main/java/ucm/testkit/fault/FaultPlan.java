package ucm.testkit.fault;

import java.util.BitSet;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import ucm.testkit.BlockBytes;
import ucm.testkit.fault.Fault.Call;

/**
 * Decides which fault strikes when. What is decided depends on the seed, the number of the call and
 * the item alone, and so not on how threads interleave. Planned by one thread, then thread-safe.
 */
final class FaultPlan {

  private record Site(Call call, Fault fault) {}

  /** One fault at one kind of call. */
  private static final class Strikes {
    private final BitSet forced = new BitSet();
    private final AtomicLong count = new AtomicLong();
    private double rate;
  }

  private final long seed;
  private final Map<Call, AtomicInteger> calls = new ConcurrentHashMap<>();
  private final Map<Site, Strikes> sites = new ConcurrentHashMap<>();

  FaultPlan(long seed) {
    this.seed = seed;
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
    Strikes site = site(call, fault);
    return site.rate > 0 || !site.forced.isEmpty();
  }

  /** Whether a fault strikes an item (a shard, a block, or 0 for the call as a whole) of a call. */
  boolean strikes(Call call, Fault fault, int number, long item) {
    Strikes site = site(call, fault);
    long siteSeed = seedOf(call) + fault.name().hashCode();
    long bits = BlockBytes.mix(BlockBytes.mix(BlockBytes.mix(siteSeed) + number) + item);
    boolean struck = site.forced.get(number) || (bits >>> 11) * 0x1.0p-53 < site.rate;
    if (struck) {
      site.count.incrementAndGet();
    }
    return struck;
  }

  long struck(Call call, Fault fault) {
    return site(call, fault).count.get();
  }

  /** A number drawn for a call, for choices that are not yes or no. */
  long draw(Call call, int number) {
    return BlockBytes.mix(seedOf(call) + number);
  }

  private long seedOf(Call call) {
    return BlockBytes.mix(seed + call.name().hashCode());
  }

  private AtomicInteger numberOf(Call call) {
    return calls.computeIfAbsent(call, _ -> new AtomicInteger());
  }

  private Strikes site(Call call, Fault fault) {
    if (!fault.strikes(call)) {
      throw new IllegalArgumentException(fault + " does not strike " + call);
    }
    return sites.computeIfAbsent(new Site(call, fault), _ -> new Strikes());
  }
}

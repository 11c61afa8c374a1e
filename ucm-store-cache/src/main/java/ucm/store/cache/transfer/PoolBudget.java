package ucm.store.cache.transfer;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.LongConsumer;

/**
 * Memory that pools divide: the most that one of them may have is what all have together. Each has as many
 * blocks as the others, as engines that keep blocks of several sizes have one of each for the same tokens.
 * A pool that comes or goes changes what the others have. Thread-safe.
 */
final class PoolBudget {

  /** That of this process. */
  static final PoolBudget OF_PROCESS = new PoolBudget();

  /**
   * What a pool has part in.
   *
   * @param capacityBytes what it would have alone
   * @param slotBytes of a slot
   * @param shards slots of a block
   */
  record Share(long capacityBytes, long slotBytes, int shards) {
    long blockBytes() {
      return slotBytes * shards;
    }

    /** How many slots it has of some blocks; those of one at least. */
    int slots(long blocks) {
      return (int) Math.min(Math.max(1, blocks) * shards, Math.max(1, capacityBytes / slotBytes));
    }
  }

  private record Member(Share share, CachePool pool) {
    long surplusBytes(long blocks) {
      return Math.max(0, pool.slots.limit() - share.slots(blocks)) * share.slotBytes;
    }
  }

  // Guarded by this.
  private final List<Member> members = new ArrayList<>();

  /**
   * Makes a pool, when the others have made room for it.
   *
   * @param check is given how many bytes it takes at first beyond those that the others give; throws when there
   *     are not so many, so that the others lose no blocks for a pool that cannot be made
   * @param maker is given how many slots it may use at first
   */
  synchronized CachePool join(Share share, LongConsumer check, IntFunction<CachePool> maker) {
    List<Share> all = new ArrayList<>(members.stream().map(Member::share).toList());
    all.add(share);
    long blocks = blocks(all);
    long given = members.stream().mapToLong(member -> member.surplusBytes(blocks)).sum();
    check.accept(share.slots(blocks) * share.slotBytes - given);
    apply(blocks);
    try {
      CachePool pool = maker.apply(share.slots(blocks));
      members.add(new Member(share, pool));
      return pool;
    } catch (RuntimeException | Error e) {
      apply(blocks(members.stream().map(Member::share).toList()));
      throw e;
    }
  }

  /** A pool is not used any more, and its memory is given back. */
  synchronized void leave(CachePool pool) {
    if (members.removeIf(member -> member.pool == pool)) {
      apply(blocks(members.stream().map(Member::share).toList()));
    }
  }

  private static long blocks(List<Share> shares) {
    long bytes = shares.stream().mapToLong(Share::capacityBytes).max().orElse(0);
    long each = shares.stream().mapToLong(Share::blockBytes).sum();
    return each == 0 ? 0 : bytes / each;
  }

  private void apply(long blocks) {
    // Those that give come before those that take.
    members.stream()
        .sorted(
            Comparator.comparingInt(
                member -> member.share.slots(blocks) - member.pool.slots.limit()))
        .forEach(member -> member.pool.slots.limit(member.share.slots(blocks)));
  }
}

package ucm.store.cache.pool;

import java.util.Arrays;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreMetrics;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.pool.SlotPool.Reservation;

/**
 * The slots of the pool as a state machine, the blocks they belong to, and the order in which these are
 * evicted. The methods are atomic under the monitor of this, and call no code of others.
 *
 * <pre>
 *   FREE --take--> LOADING | DUMPING --filled--> READY --evicted--> FREE
 *                        |                         |
 *                     orphan                     orphan
 *                        +--------> ORPHAN <-------+   --last reference gone--> FREE
 * </pre>
 *
 * <p>A task that fills, reads or writes on a slot holds a reference; only a READY slot without references is
 * evicted. An ORPHAN is not found by look-ups and lives on until its references go. Whole blocks are
 * evicted rather than shards, because a block that lacks one shard is no hit.
 */
abstract class SlotStates extends PoolBlocks {

  /** Answer to {@link #fill}: a task waits for one of the slots. */
  static final int JOINED = 1;

  /** Answer to several calls: a slot can now be taken by others. */
  static final int ROOM = 2;

  /** Answer to several calls: the memory of a slot is to be given back. */
  static final int SURPLUS = 4;

  /**
   * A wait for a slot that another task fills; holds a reference to the slot.
   *
   * @param index what the waiter calls the shard
   * @param next another wait for the same slot, or null
   */
  record Wait(SlotPool.Waiter waiter, int index, @Nullable Wait next) {}

  private static final byte FREE = 0;
  private static final byte LOADING = 1;
  private static final byte DUMPING = 2;
  private static final byte READY = 3;
  private static final byte ORPHAN = 4;

  private final StoreMetrics.Counter evictions;
  // By slot.
  private final byte[] states;
  private final int[] references;
  private final int[] entries;
  private final int[] shardOf;
  private final @Nullable Wait[] waits;
  private final int[] free;
  private int freeCount;
  // Slots that are not to be used: those from the second number on have memory still.
  private final int[] parked;
  private int parkedCount;
  private int givenBack;
  private int limit;
  private int idleSlots;
  private int lentSlots;
  private int hand;

  /** Free slots; see {@link SlotPool}. */
  SlotStates(int count, int shards, CachePolicy policy, StoreMetrics.Counter evictions) {
    super(count, shards, policy);
    this.evictions = evictions;
    states = new byte[count];
    references = new int[count];
    entries = new int[count];
    shardOf = new int[count];
    waits = new Wait[count];
    free = new int[count];
    parked = new int[count];
    limit = count;
    // The lowest slot is on top: shards that come together lie together.
    for (int slot = count - 1; slot >= 0; slot--) {
      free[freeCount++] = slot;
    }
  }

  /** Whether a block is here with all its shards, ready to be read. */
  public final synchronized boolean isComplete(BlockIds ids, int i) {
    int entry = table.find(ids.high(i), ids.low(i));
    return entry != NONE && ready[entry] == shards;
  }

  /** Whether some shard of a block was dumped here and is still here. */
  public final synchronized boolean wasDumped(long high, long low) {
    int entry = table.find(high, low);
    return entry != NONE && dumped[entry];
  }

  /**
   * Asks for a shard in order to read it; takes a slot for it if it is not there.
   *
   * @param waiter waits for a slot that is being filled; null when none does
   * @param index what the waiter calls the shard
   * @param mayTake whether a slot may be taken
   * @return a {@link Reservation}
   */
  public final synchronized long reserveForLoad(
      long high,
      long low,
      int shard,
      SlotPool.@Nullable Waiter waiter,
      int index,
      boolean mayTake) {
    int slot = find(high, low, shard);
    if (slot == NONE) {
      return take(high, low, shard, LOADING, mayTake);
    }
    if (states[slot] == READY) {
      reference(slot);
      use(slot);
      return Reservation.of(Reservation.HIT, slot);
    }
    if (waiter != null) {
      reference(slot);
      waits[slot] = new Wait(waiter, index, waits[slot]);
    }
    return Reservation.of(Reservation.FILLING, slot);
  }

  /**
   * Asks for a slot to dump a shard into; see {@link #reserveForLoad}. A load of the shard that is under way
   * is displaced: the dump brings the bytes, and what the load finds is for those who wait for it only. A
   * shard that another dump is bringing is a hit.
   */
  public final synchronized long reserveForDump(long high, long low, int shard, boolean mayTake) {
    int slot = find(high, low, shard);
    if (slot == NONE || states[slot] == LOADING) {
      return take(high, low, shard, DUMPING, mayTake);
    }
    if (states[slot] == READY) {
      use(slot);
    }
    return Reservation.of(Reservation.HIT, slot);
  }

  /** Asks for a slot that look-ups do not find, as it belongs to no block: an orphan from the start. */
  public final synchronized long reserveUnnamed(boolean mayTake) {
    int slot = mayTake ? takeAny() : NONE;
    if (slot == NONE) {
      return Reservation.of(Reservation.NO_ROOM, NONE);
    }
    states[slot] = ORPHAN;
    references[slot] = 1;
    return Reservation.of(Reservation.RESERVED, slot);
  }

  /**
   * Says that reserved slots are filled. When a task waits for one of them, all references are kept, and the
   * filler gives them back after it has told the waiters: a slot that went to another block before would
   * have others wait for it.
   *
   * @param filled negative numbers are passed over
   * @param release whether to give the filler's references back
   * @return {@link #JOINED}, or {@link #ROOM}, or 0
   */
  final synchronized int fill(int[] filled, int from, int to, boolean release) {
    int answer = 0;
    for (int i = from; i < to; i++) {
      if (filled[i] >= 0) {
        answer |= setReady(filled[i]);
      }
    }
    return answer == 0 && release ? unreference(filled, from, to) : answer;
  }

  /** Says that one reserved slot is filled; see {@link #fill(int[], int, int, boolean)}. */
  final synchronized int fill(int slot, boolean release) {
    int answer = setReady(slot);
    return answer == 0 && release ? unreference(slot) : answer;
  }

  /** Has look-ups not find a slot that will not be filled; the filler keeps its reference. */
  final synchronized void hide(int slot) {
    orphan(slot);
  }

  /** The waits for a slot that is filled now, or will not be. No wait is added any more. */
  final synchronized @Nullable Wait takeWaits(int slot) {
    Wait all = waits[slot];
    waits[slot] = null;
    return all;
  }

  /** Gives references back; negative numbers are passed over. {@link #ROOM} or 0. */
  final synchronized int unreference(int[] given, int from, int to) {
    int answer = 0;
    for (int i = from; i < to; i++) {
      if (given[i] >= 0) {
        answer |= unreference(given[i]);
      }
    }
    return answer;
  }

  /** Gives one reference back; {@link #ROOM} or 0. */
  final synchronized int unreference(int slot) {
    if (--references[slot] > 0) {
      return 0;
    }
    if (states[slot] == ORPHAN) {
      toFree(slot);
    } else if (isToPark()) {
      idleSlots++;
      addBusy(entries[slot], -1);
      evict();
    } else {
      idleSlots++;
      addBusy(entries[slot], -1);
    }
    return ROOM | surplus();
  }

  /**
   * Drops a block; shards in use go with their last reference.
   *
   * @param onlyLost leaves one alone that is being dumped; see {@link SlotPool#forgetLost}
   * @return {@link #ROOM} or 0
   */
  final synchronized int dropBlock(long high, long low, boolean onlyLost) {
    int entry = table.find(high, low);
    if (entry == NONE
        || (onlyLost && dumped[entry] && (ready[entry] < shards || busy[entry] > 0))) {
      return 0;
    }
    return dropShards(entry) > 0 ? ROOM | surplus() : 0;
  }

  /** Whether only some shards of a block were dumped. */
  final boolean isPartial(int entry) {
    return dumped[entry] && ready[entry] < shards;
  }

  /** Drops blocks; {@link #ROOM} or 0. */
  final synchronized int dropEach(IntPredicate which) {
    int freed = 0;
    for (int entry = 0; entry < table.end(); entry++) {
      if (held[entry] > 0 && which.test(entry)) {
        freed += dropShards(entry);
      }
    }
    return freed > 0 ? ROOM | surplus() : 0;
  }

  /**
   * Lends blocks: their slots are referenced until they are {@linkplain #takeBack taken back}.
   *
   * @return the first slots of the first blocks that are ready and lie in one piece; half of the pool at the
   *     most, so that others find slots
   */
  public final synchronized int[] lend(BlockIds ids) {
    int[] lent = new int[ids.size()];
    int count = 0;
    int most = mayLend(lent.length);
    while (count < most) {
      int entry = table.find(ids.high(count), ids.low(count));
      if (entry == NONE || ready[entry] < shards || !isInOnePiece(slots, entry)) {
        break;
      }
      int first = slots[entry * shards];
      for (int slot = first; slot < first + shards; slot++) {
        reference(slot);
      }
      use(first);
      lent[count++] = first;
    }
    lentSlots += count * shards;
    return Arrays.copyOf(lent, count);
  }

  /** How many more blocks may be lent. */
  private int mayLend(int wanted) {
    return Math.clamp((limit / 2 - lentSlots) / shards, 0, wanted);
  }

  /** Whether a block lies in one piece, of which the slots are listed block by block. */
  private boolean isInOnePiece(int[] listed, int block) {
    int first = block * shards;
    for (int shard = 1; shard < shards; shard++) {
      if (listed[first + shard] != listed[first] + shard) {
        return false;
      }
    }
    return listed[first] != NONE;
  }

  /** Takes the right to lend some more blocks, which are to be fetched; says how many at the most. */
  public final synchronized int beginFetch(int wanted) {
    int blocks = mayLend(wanted);
    lentSlots += blocks * shards;
    return blocks;
  }

  /** Gives the right back that {@link #beginFetch} took, where nothing was fetched. */
  public final synchronized void endFetch(int blocks) {
    lentSlots -= blocks * shards;
  }

  /** The first blocks that were fetched are lent, as far as they lie in one piece; says how many. */
  final synchronized int countFetched(int[] fetched) {
    int blocks = fetched.length / shards;
    int count = 0;
    while (count < blocks && isInOnePiece(fetched, count)) {
      count++;
    }
    endFetch(blocks - count);
    return count;
  }

  /** Takes the slots of lent blocks back; {@link #ROOM} or 0. */
  final synchronized int takeBack(int[] lent) {
    int answer = 0;
    // Backwards, so that the next block finds those that come free in the order of memory.
    for (int i = lent.length - 1; i >= 0; i--) {
      for (int shard = shards - 1; shard >= 0; shard--) {
        answer |= unreference(lent[i] + shard);
      }
    }
    lentSlots -= lent.length * shards;
    parkSurplus();
    return answer | surplus();
  }

  /** Slots that hold, or are about to hold, a shard. */
  public final synchronized int inUse() {
    return states.length - freeCount - parkedCount;
  }

  /** Slots that are being filled, read or written on at this moment. */
  public final synchronized int referenced() {
    return inUse() - idleSlots;
  }

  /** Most slots in use. */
  public final synchronized int limit() {
    return limit;
  }

  /**
   * Has no more slots in use than some, of which those that are referenced now go when they are not; {@link
   * #ROOM} and {@link #SURPLUS} in one number. As long as more than half of them are lent, there are as many
   * more, so that others find slots.
   */
  final synchronized int setLimit(int most) {
    limit = Math.clamp(most, 1, states.length);
    while (parkedCount > surplusSlots()) {
      free[freeCount++] = parked[--parkedCount];
    }
    givenBack = Math.min(givenBack, parkedCount);
    parkSurplus();
    return ROOM | surplus();
  }

  private void parkSurplus() {
    while (isToPark() && (freeCount > 0 || evict())) {
      if (freeCount > 0) {
        parked[parkedCount++] = free[--freeCount];
      }
    }
  }

  /** How many slots are not to be used. */
  private int surplusSlots() {
    return Math.max(0, states.length - limit - Math.max(0, lentSlots - limit / 2));
  }

  /** Slots whose memory is to be given back; none of them is used before the limit is raised. */
  final synchronized int[] takeSurplus() {
    int[] surplus = Arrays.copyOfRange(parked, givenBack, parkedCount);
    givenBack = parkedCount;
    return surplus;
  }

  private int surplus() {
    return givenBack < parkedCount ? SURPLUS : 0;
  }

  private boolean isToPark() {
    return parkedCount < surplusSlots();
  }

  /** Takes a slot for a shard, with one reference; a slot that has the shard becomes an orphan. */
  private long take(long high, long low, int shard, byte state, boolean mayTake) {
    int slot = mayTake ? takeAny() : NONE;
    if (slot == NONE) {
      return Reservation.of(Reservation.NO_ROOM, NONE);
    }
    // Taking a slot may have evicted shards of this very block: look now, not before.
    int displaced = find(high, low, shard);
    if (displaced != NONE) {
      orphan(displaced);
    }
    int entry = put(high, low);
    slots[entry * shards + shard] = slot;
    held[entry]++;
    addBusy(entry, 1);
    dumped[entry] |= state == DUMPING;
    states[slot] = state;
    references[slot] = 1;
    entries[slot] = entry;
    shardOf[slot] = shard;
    return Reservation.of(Reservation.RESERVED, slot);
  }

  private int takeAny() {
    boolean isFree = freeCount > 0 && table.size() < maxBlocks;
    if (!isFree && !evict()) {
      return NONE;
    }
    while (freeCount == 0) {
      // What was evicted makes room for others.
      if (!evict()) {
        return NONE;
      }
    }
    return free[--freeCount];
  }

  private boolean evict() {
    if (idleSlots == 0) {
      return false;
    }
    int entry = victim();
    if (entry != NONE) {
      evictions.add(dropShards(entry));
      return true;
    }
    // Every block has a shard in use, as when the blocks under way fill the pool: take single
    // shards.
    while (states[hand] != READY || references[hand] > 0) {
      hand = hand + 1 == states.length ? 0 : hand + 1;
    }
    // The shards that stay no longer tell whether those that are not here were dumped.
    dumped[entries[hand]] = false;
    dropIdle(hand);
    evictions.increment();
    return true;
  }

  private int setReady(int slot) {
    if (states[slot] != ORPHAN) {
      states[slot] = READY;
      ready[entries[slot]]++;
    }
    return waits[slot] == null ? 0 : JOINED;
  }

  private void reference(int slot) {
    if (references[slot]++ == 0) {
      idleSlots--;
      addBusy(entries[slot], 1);
    }
  }

  /** A load or dump of a block takes all its shards, in one task or in many: one of them counts as a use. */
  private void use(int slot) {
    if (shardOf[slot] == 0) {
      order.touch(entries[slot]);
    }
  }

  /** Takes a referenced slot from its block, unless that has happened. */
  private void orphan(int slot) {
    if (states[slot] != ORPHAN) {
      addBusy(entries[slot], -1);
      detach(slot);
      states[slot] = ORPHAN;
    }
  }

  /** Takes all slots from a block, and says how many became free. */
  private int dropShards(int entry) {
    int freed = 0;
    // The entry is gone, and may not be touched, once its last slot is.
    int left = held[entry];
    // Backwards, so that the next block finds its slots in the order of memory.
    for (int shard = shards - 1; left > 0; shard--) {
      int slot = slots[entry * shards + shard];
      if (slot == NONE) {
        continue;
      }
      left--;
      if (references[slot] > 0) {
        orphan(slot);
      } else {
        dropIdle(slot);
        freed++;
      }
    }
    return freed;
  }

  private void dropIdle(int slot) {
    detach(slot);
    toFree(slot);
    idleSlots--;
  }

  private void detach(int slot) {
    int entry = entries[slot];
    if (states[slot] == READY) {
      ready[entry]--;
    }
    slots[entry * shards + shardOf[slot]] = NONE;
    if (--held[entry] == 0) {
      remove(entry);
    }
  }

  private void toFree(int slot) {
    states[slot] = FREE;
    if (isToPark()) {
      parked[parkedCount++] = slot;
    } else {
      free[freeCount++] = slot;
    }
  }
}

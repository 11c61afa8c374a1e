package ucm.store.cache.eviction;

import java.util.Arrays;

/**
 * Least recently used, with two speeds of ageing: a block that was used again ages half as fast as one
 * that was used once.
 *
 * <p>Many blocks of prompts are never asked for again, and pure LRU keeps each of them as long as a block
 * of a conversation that goes on. Two LRU lines, and of their oldest blocks the one of the greater weighted
 * age goes. A block that is evicted and comes back was used again too: the ids of as many evicted blocks
 * as there is room for are remembered. The idea of two lines and of remembered ids is that of 2Q (Johnson
 * and Shasha, VLDB 1994); here ages are weighed, and no lengths of the lines fixed, so that a large pool,
 * which few blocks leave, is near LRU.
 */
final class AgedLruOrder implements EvictionOrder {

  // Chosen on the chat trace of docs/cache.md, which shows what it gives there and elsewhere.
  private static final int SLOWER = 2;

  private final EntryQueue once;
  private final EntryQueue again;
  private final EvictedIds evicted;
  private boolean[] reused;
  private long[] since;
  private long clock;

  /**
   * An empty order of entries below {@code capacity}.
   *
   * @param remembered how many evicted blocks are remembered
   */
  AgedLruOrder(int capacity, int remembered) {
    once = new EntryQueue(capacity);
    again = new EntryQueue(capacity);
    evicted = new EvictedIds(remembered);
    reused = new boolean[capacity];
    since = new long[capacity];
  }

  @Override
  public void grow(int capacity) {
    once.grow(capacity);
    again.grow(capacity);
    reused = Arrays.copyOf(reused, capacity);
    since = Arrays.copyOf(since, capacity);
  }

  @Override
  public void enter(int entry, long high, long low) {
    reused[entry] = evicted.remove(high, low);
  }

  @Override
  public void use(int entry) {
    boolean idle = line(entry).has(entry);
    if (idle) {
      line(entry).remove(entry);
    }
    reused[entry] = true;
    if (idle) {
      idle(entry);
    }
  }

  @Override
  public void busy(int entry) {
    line(entry).remove(entry);
  }

  @Override
  public void idle(int entry) {
    since[entry] = ++clock;
    line(entry).addNewest(entry);
  }

  @Override
  public int victim() {
    int oldOnce = once.oldest();
    int oldAgain = again.oldest();
    if (oldOnce == BlockTable.NONE || oldAgain == BlockTable.NONE) {
      return oldOnce == BlockTable.NONE ? oldAgain : oldOnce;
    }
    return SLOWER * (clock - since[oldOnce]) >= clock - since[oldAgain] ? oldOnce : oldAgain;
  }

  @Override
  public void evicted(int entry, long high, long low) {
    evicted.add(high, low);
  }

  @Override
  public void leave(int entry) {
    line(entry).remove(entry);
  }

  private EntryQueue line(int entry) {
    return reused[entry] ? again : once;
  }
}

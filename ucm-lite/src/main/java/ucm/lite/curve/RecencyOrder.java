package ucm.lite.curve;

import java.util.Arrays;

/**
 * The order in which blocks were last touched, and the question of every stack distance: how
 * many distinct blocks were touched since time t?
 *
 * <p>Every touch gets the next time. A bit per time says whether some block was last touched then;
 * a Fenwick tree (Fenwick 1994) sums the set bits over words of 64. The word being filled stays out
 * of the tree until it is full, so a touch costs one tree update, for the time it leaves. When the
 * times run out they are dealt again, without gaps and in the same order; as there are at least
 * twice as many times as blocks, that costs a constant per touch, and memory is O(distinct blocks):
 * about 4.5 to 9 bytes a block.
 */
final class RecencyOrder {
  private static final int NEVER = -1;
  private static final int INITIAL_WORDS = 16;

  private int[] lastTime = new int[64];
  private long[] live = new long[INITIAL_WORDS];
  private int[] tree = new int[INITIAL_WORDS + 1];
  private int now;
  private int liveCount;

  RecencyOrder() {
    Arrays.fill(lastTime, NEVER);
  }

  /** Makes room for blocks numbered below {@code blocks}. */
  void ensureBlocks(int blocks) {
    int old = lastTime.length;
    if (blocks > old) {
      lastTime = Arrays.copyOf(lastTime, (int) Math.min(Integer.MAX_VALUE - 8, 2L * blocks));
      Arrays.fill(lastTime, old, lastTime.length, NEVER);
    }
  }

  /** Returns when the block, touched before, was last touched; larger is later. */
  int lastTime(int block) {
    return lastTime[block];
  }

  /** Returns how many distinct blocks were last touched at {@code time} or later. */
  int touchedSince(int time) {
    int word = time >>> 6;
    int before = Long.bitCount(live[word] & ((1L << time) - 1));
    for (int i = word; i > 0; i &= i - 1) {
      before += tree[i];
    }
    return liveCount - before;
  }

  void touch(int block) {
    if (now >>> 6 == live.length) {
      renumberTimes();
    }
    if (lastTime[block] != NEVER) {
      remove(block);
    }
    liveCount++;
    int time = now++;
    lastTime[block] = time;
    int word = time >>> 6;
    live[word] |= 1L << time;
    if ((now & 63) == 0) {
      add(word, Long.bitCount(live[word]));
    }
  }

  /** Forgets a block that was touched. */
  void remove(int block) {
    int time = lastTime[block];
    int word = time >>> 6;
    live[word] &= ~(1L << time);
    if (word < now >>> 6) {
      add(word, -1);
    }
    lastTime[block] = NEVER;
    liveCount--;
  }

  private void add(int word, int change) {
    for (int i = word + 1; i < tree.length; i += i & -i) {
      tree[i] += change;
    }
  }

  private void renumberTimes() {
    int[] before = new int[live.length];
    for (int word = 0, sum = 0; word < live.length; word++) {
      before[word] = sum;
      sum += Long.bitCount(live[word]);
    }
    for (int block = 0; block < lastTime.length; block++) {
      int time = lastTime[block];
      if (time != NEVER) {
        int word = time >>> 6;
        lastTime[block] = before[word] + Long.bitCount(live[word] & ((1L << time) - 1));
      }
    }
    int words = live.length;
    while (64L * words < 2L * liveCount) {
      words *= 2;
    }
    live = new long[words];
    tree = new int[words + 1];
    now = liveCount;
    int full = liveCount >>> 6;
    Arrays.fill(live, 0, full, -1L);
    if ((liveCount & 63) != 0) {
      live[full] = (1L << liveCount) - 1;
    }
    for (int word = 0; word < full; word++) {
      add(word, 64);
    }
  }
}

package ucm.bench.measure;

import java.util.SplittableRandom;
import ucm.api.BlockIds;

/**
 * Ids of blocks that are not stored yet. Their first digits, from which stores choose a folder, are
 * those of few folders and the same in every round: a store that has run for a while has made its
 * folders, and a benchmark shall not time that.
 */
public final class BenchIds {

  private static final int FOLDERS = 64;
  private static final long FOLDER_SEED = 0x75636D;
  // More digits than the five from which folders are named at the most.
  private static final int FOLDER_BITS = 24;

  private final long[] folders = new SplittableRandom(FOLDER_SEED).longs(FOLDERS).toArray();
  private final SplittableRandom random;

  public BenchIds(long seed) {
    random = new SplittableRandom(seed);
  }

  public BlockIds next(int count) {
    long[] words = new long[2 * count];
    long below = -1L >>> FOLDER_BITS;
    for (int i = 0; i < count; i++) {
      words[2 * i] = (folders[i % FOLDERS] & ~below) | (random.nextLong() & below);
      words[2 * i + 1] = random.nextLong();
    }
    return BlockIds.wrap(words);
  }
}

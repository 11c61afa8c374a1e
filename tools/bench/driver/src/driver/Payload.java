package driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;

/**
 * The engine's memory: a region a tensor of each shard, each with a place for every block, and what belongs
 * there, which a block's id decides to the last word. One thread.
 */
final class Payload {

  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final byte NOTHING = (byte) 0xA5;

  private final long seed;
  private final int blocks;
  private final int shards;
  private final int tensors;
  private final long tensor;
  private final MemorySegment memory;
  private final MemoryRegion[] regions;

  Payload(long seed, int blocks, int shards, int tensors, long tensor) {
    this.seed = seed;
    this.blocks = blocks;
    this.shards = shards;
    this.tensors = tensors;
    this.tensor = tensor;
    memory = Arena.global().allocate(blocks * (long) shards * tensors * tensor, 4096);
    clear();
    regions = new MemoryRegion[shards * tensors];
    for (int i = 0; i < regions.length; i++) {
      regions[i] = MemoryRegion.host(memory.asSlice(i * blocks * tensor, blocks * tensor));
    }
  }

  /** Names that no other seed and round has. */
  BlockIds ids(long round, int count) {
    long[] words = new long[2 * count];
    for (int i = 0; i < count; i++) {
      words[2 * i] = mix(seed + mix((round << 32) + i));
      words[2 * i + 1] = mix(words[2 * i] + 1);
    }
    return BlockIds.wrap(words);
  }

  /** Where the tensors {@code t} of shards {@code s} are. */
  MemoryRegion region(int s, int t) {
    return regions[s * tensors + t];
  }

  void clear() {
    memory.fill(NOTHING);
  }

  void fill(BlockIds ids) {
    for (int b = 0; b < blocks; b++) {
      for (int i = 0; i < regions.length; i++) {
        MemorySegment at = at(b, i);
        long word = first(ids.high(b), i);
        for (long k = 0, n = tensor / Long.BYTES; k < n; k++) {
          at.setAtIndex(LONG, k, word + k * STEP);
        }
      }
    }
  }

  /** How many blocks have not what belongs there. */
  int wrong(BlockIds ids) {
    int found = 0;
    for (int b = 0; b < blocks; b++) {
      long differs = 0;
      for (int i = 0; i < regions.length; i++) {
        MemorySegment at = at(b, i);
        long word = first(ids.high(b), i);
        for (long k = 0, n = tensor / Long.BYTES; k < n; k++) {
          differs |= at.getAtIndex(LONG, k) ^ (word + k * STEP);
        }
      }
      found += differs == 0 ? 0 : 1;
    }
    return found;
  }

  private MemorySegment at(int block, int region) {
    return memory.asSlice(region * (long) blocks * tensor + block * tensor, tensor);
  }

  private static long first(long high, int region) {
    return mix(high ^ ((region + 1L) * 0xD6E8FEB86659FD93L));
  }

  /** SplitMix64's last steps. */
  private static long mix(long word) {
    long x = word + STEP;
    x = (x ^ (x >>> 30)) * 0xBF58476D1CE4E5B9L;
    x = (x ^ (x >>> 27)) * 0x94D049BB133111EBL;
    return x ^ (x >>> 31);
  }
}

package ucm.testkit;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.Transfer;

/**
 * Host memory for the shards of one transfer, as an engine would have it, with guard bytes around
 * every segment so that a store that writes a byte too many is found.
 *
 * <p>The memory is freed by the garbage collector and never earlier, so that a store that touches it
 * too late fails a test instead of crashing the process. Filling and checking are for one thread at a
 * time per shard.
 */
public final class TransferMemory {

  /** How the segments lie in memory. */
  public enum Placement {
    /** Each shard is one segment; all in one region, last shard first. */
    PACKED,
    /** Each tensor is a segment; all in one region, last shard first. */
    SCATTERED,
    /** Each tensor is a segment, in a region of its own as with an engine's KV-cache tensors. */
    REGION_PER_TENSOR
  }

  /** Bytes between two segments; not a power of two, so that most segments are not aligned. */
  public static final int GUARD_BYTES = 67;

  private static final byte GUARD = (byte) 0xE7;
  private static final byte SCRIBBLE = (byte) 0x5C;

  private final BlockLayout layout;
  private final Placement placement;
  private final BlockIds ids;
  private final int[] shards;
  private final int segments;
  private final MemoryRegion[] regions;
  private final MemoryRegion[] regionOfSegment;
  private final long[] offsets;

  /**
   * Memory for some shards; all of it holds guard bytes, so {@link #fill} it for a dump.
   *
   * @param ids the block of each shard
   * @param shards the index of each shard in its block
   */
  public TransferMemory(BlockLayout layout, Placement placement, BlockIds ids, int[] shards) {
    this(layout, placement, ids, shards, Arena.ofAuto());
  }

  /** Memory that is freed with an arena, for tests that move more than the garbage collector keeps up with. */
  TransferMemory(BlockLayout layout, Placement placement, BlockIds ids, int[] shards, Arena arena) {
    if (ids.size() != shards.length) {
      throw new IllegalArgumentException(
          "one block per shard; found " + ids.size() + " blocks, " + shards.length + " shards");
    }
    this.layout = layout;
    this.placement = placement;
    this.ids = ids;
    this.shards = shards.clone();
    this.segments = placement == Placement.PACKED ? 1 : layout.tensorCount();
    this.regions = new MemoryRegion[placement == Placement.REGION_PER_TENSOR ? segments : 1];
    this.regionOfSegment = new MemoryRegion[shards.length * segments];
    this.offsets = new long[shards.length * segments];
    for (int r = 0; r < regions.length; r++) {
      int first = regions.length == 1 ? 0 : r;
      int end = regions.length == 1 ? segments : r + 1;
      regions[r] = place(arena, first, end);
    }
  }

  /** Memory for all shards of some blocks, block after block. */
  public static TransferMemory ofBlocks(BlockLayout layout, Placement placement, BlockIds ids) {
    return ofBlocks(layout, placement, ids, Arena.ofAuto());
  }

  /** Memory for all shards of some blocks that is freed with an arena. */
  static TransferMemory ofBlocks(
      BlockLayout layout, Placement placement, BlockIds ids, Arena arena) {
    int perBlock = layout.shardCount();
    long[] words = new long[2 * ids.size() * perBlock];
    int[] shards = new int[ids.size() * perBlock];
    for (int i = 0; i < shards.length; i++) {
      words[2 * i] = ids.high(i / perBlock);
      words[2 * i + 1] = ids.low(i / perBlock);
      shards[i] = i % perBlock;
    }
    return new TransferMemory(layout, placement, BlockIds.wrap(words), shards, arena);
  }

  /** Memory for some shards of one block. */
  public static TransferMemory ofShards(
      BlockLayout layout, Placement placement, BlockIds ids, int block, int... shards) {
    long[] words = new long[2 * shards.length];
    for (int i = 0; i < shards.length; i++) {
      words[2 * i] = ids.high(block);
      words[2 * i + 1] = ids.low(block);
    }
    return new TransferMemory(layout, placement, BlockIds.wrap(words), shards);
  }

  private MemoryRegion place(Arena arena, int firstSegment, int endSegment) {
    long perShard = 0;
    for (int segment = firstSegment; segment < endSegment; segment++) {
      perShard += pieceSize(segment) + GUARD_BYTES;
    }
    MemorySegment memory = arena.allocate(GUARD_BYTES + shards.length * perShard).fill(GUARD);
    MemoryRegion region = MemoryRegion.host(memory);
    long at = GUARD_BYTES;
    for (int shard = shards.length - 1; shard >= 0; shard--) {
      for (int segment = firstSegment; segment < endSegment; segment++) {
        regionOfSegment[shard * segments + segment] = region;
        offsets[shard * segments + segment] = at;
        at += pieceSize(segment) + GUARD_BYTES;
      }
    }
    return region;
  }

  /** How many shards. */
  public int shardCount() {
    return shards.length;
  }

  /** A transfer of all shards from or to this memory. */
  public Transfer transfer() {
    return transfer(ShardListener.NONE);
  }

  /** A transfer of all shards from or to this memory, with a listener. */
  public Transfer transfer(ShardListener listener) {
    Transfer.Builder builder =
        placement == Placement.PACKED ? Transfer.packed(layout) : Transfer.scattered(layout);
    for (int shard = 0; shard < shards.length; shard++) {
      builder.shard(ids, shard, shards[shard]);
      for (int segment = 0; segment < segments; segment++) {
        builder.piece(
            regionOfSegment[shard * segments + segment], offsets[shard * segments + segment]);
      }
    }
    return builder.build(listener);
  }

  /** Fills every shard with the bytes of its block. */
  public TransferMemory fill() {
    for (int shard = 0; shard < shards.length; shard++) {
      for (int segment = 0; segment < segments; segment++) {
        BlockBytes.fill(
            segment(shard, segment),
            ids.high(shard),
            ids.low(shard),
            shards[shard],
            start(segment));
      }
    }
    return this;
  }

  /** Fills every shard with bytes that belong to no block. */
  public TransferMemory scribble() {
    for (int shard = 0; shard < shards.length; shard++) {
      scribble(shard);
    }
    return this;
  }

  /** Fills a shard with bytes that belong to no block. */
  public void scribble(int shard) {
    for (int segment = 0; segment < segments; segment++) {
      segment(shard, segment).fill(SCRIBBLE);
    }
  }

  /**
   * Checks that a shard holds the bytes of its block.
   *
   * @throws AssertionError naming the first wrong byte
   */
  public void check(int shard) {
    for (int segment = 0; segment < segments; segment++) {
      BlockBytes.check(
          segment(shard, segment), ids.high(shard), ids.low(shard), shards[shard], start(segment));
    }
  }

  /**
   * Checks every shard, and the guard bytes.
   *
   * @throws AssertionError naming the first wrong byte
   */
  public void check() {
    for (int shard = 0; shard < shards.length; shard++) {
      check(shard);
    }
    checkGuards();
  }

  /**
   * Checks that every shard is as {@link #scribble} left it, and the guard bytes too.
   *
   * @throws AssertionError naming the first byte that was changed
   */
  public void checkScribbled() {
    for (int shard = 0; shard < shards.length; shard++) {
      for (int segment = 0; segment < segments; segment++) {
        requireAll(SCRIBBLE, segment(shard, segment), shard, segment, "inside");
      }
    }
    checkGuards();
  }

  /**
   * Checks that no byte around the segments was changed.
   *
   * @throws AssertionError naming the segment beside which a byte was changed
   */
  public void checkGuards() {
    for (int shard = 0; shard < shards.length; shard++) {
      for (int segment = 0; segment < segments; segment++) {
        MemorySegment region = regionOfSegment[shard * segments + segment].segment();
        long from = offsets[shard * segments + segment];
        long end = from + pieceSize(segment);
        MemorySegment before = region.asSlice(from - GUARD_BYTES, GUARD_BYTES);
        requireAll(GUARD, before, shard, segment, "before");
        requireAll(GUARD, region.asSlice(end, GUARD_BYTES), shard, segment, "after");
      }
    }
  }

  private void requireAll(
      byte expected, MemorySegment memory, int shard, int segment, String where) {
    for (long i = 0; i < memory.byteSize(); i++) {
      byte found = memory.get(ValueLayout.JAVA_BYTE, i);
      if (found != expected) {
        throw new AssertionError(
            "memory was changed %s segment %d of shard %d of block %s, at byte %d: 0x%02x"
                .formatted(where, segment, shards[shard], ids.hex(shard), i, found));
      }
    }
  }

  private MemorySegment segment(int shard, int segment) {
    int at = shard * segments + segment;
    return regionOfSegment[at].segment().asSlice(offsets[at], pieceSize(segment));
  }

  private long pieceSize(int segment) {
    return segments == 1 ? layout.shardSize() : layout.tensorSize(segment);
  }

  private long start(int segment) {
    return layout.tensorOffset(segment);
  }
}

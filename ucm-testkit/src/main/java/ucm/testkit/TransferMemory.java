package ucm.testkit;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Transfer;
import ucm.api.TransferResult;

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

  /** Where one segment of one shard lies. */
  private record Piece(int shard, int segment, MemoryRegion region, long offset, long size) {
    MemorySegment memory() {
      return region.segment().asSlice(offset, size);
    }
  }

  private final BlockLayout layout;
  private final Placement placement;
  private final BlockIds ids;
  private final int[] shards;
  private final int segments;
  // Shard after shard.
  private final Piece[] pieces;

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
    this.pieces = new Piece[shards.length * segments];
    boolean regionPerTensor = placement == Placement.REGION_PER_TENSOR;
    for (int first = 0; first < segments; first += regionPerTensor ? 1 : segments) {
      place(arena, first, regionPerTensor ? first + 1 : segments);
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
    int[] shards = new int[ids.size() * perBlock];
    Arrays.setAll(shards, i -> i % perBlock);
    BlockIds blocks = pick(ids, shards.length, i -> i / perBlock);
    return new TransferMemory(layout, placement, blocks, shards, arena);
  }

  /** Memory for some shards of one block. */
  public static TransferMemory ofShards(
      BlockLayout layout, Placement placement, BlockIds ids, int block, int... shards) {
    return new TransferMemory(layout, placement, pick(ids, shards.length, _ -> block), shards);
  }

  /** Makes a list of so many ids out of those of another list. */
  static BlockIds pick(BlockIds ids, int count, IntUnaryOperator index) {
    long[] words = new long[2 * count];
    for (int i = 0; i < count; i++) {
      words[2 * i] = ids.high(index.applyAsInt(i));
      words[2 * i + 1] = ids.low(index.applyAsInt(i));
    }
    return BlockIds.wrap(words);
  }

  private void place(Arena arena, int firstSegment, int endSegment) {
    long perShard = 0;
    for (int segment = firstSegment; segment < endSegment; segment++) {
      perShard += pieceSize(segment) + GUARD_BYTES;
    }
    MemorySegment memory = arena.allocate(GUARD_BYTES + shards.length * perShard).fill(GUARD);
    MemoryRegion region = MemoryRegion.host(memory);
    long at = GUARD_BYTES;
    for (int shard = shards.length - 1; shard >= 0; shard--) {
      for (int segment = firstSegment; segment < endSegment; segment++) {
        long size = pieceSize(segment);
        pieces[shard * segments + segment] = new Piece(shard, segment, region, at, size);
        at += size + GUARD_BYTES;
      }
    }
  }

  private long pieceSize(int segment) {
    return segments == 1 ? layout.shardSize() : layout.tensorSize(segment);
  }

  private List<Piece> piecesOf(int shard) {
    return Arrays.asList(pieces).subList(shard * segments, (shard + 1) * segments);
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
      piecesOf(shard).forEach(piece -> builder.piece(piece.region(), piece.offset()));
    }
    return builder.build(listener);
  }

  /** Fills every shard with the bytes of its block. */
  public TransferMemory fill() {
    for (Piece piece : pieces) {
      int shard = piece.shard();
      long start = layout.tensorOffset(piece.segment());
      BlockBytes.fill(piece.memory(), ids.high(shard), ids.low(shard), shards[shard], start);
    }
    return this;
  }

  /** Fills every shard with bytes that belong to no block. */
  public TransferMemory scribble() {
    for (Piece piece : pieces) {
      piece.memory().fill(SCRIBBLE);
    }
    return this;
  }

  /** Fills a shard with bytes that belong to no block. */
  public void scribble(int shard) {
    piecesOf(shard).forEach(piece -> piece.memory().fill(SCRIBBLE));
  }

  /**
   * Checks that a shard holds the bytes of its block.
   *
   * @throws AssertionError naming the first wrong byte
   */
  public void check(int shard) {
    for (Piece piece : piecesOf(shard)) {
      long start = layout.tensorOffset(piece.segment());
      BlockBytes.check(piece.memory(), ids.high(shard), ids.low(shard), shards[shard], start);
    }
  }

  /**
   * Checks every shard of a load that ended well, and the guard bytes.
   *
   * @throws AssertionError naming the first wrong byte
   */
  public void check(TransferResult result) {
    for (int shard = 0; shard < shards.length; shard++) {
      if (result.outcome(shard) == ShardOutcome.OK) {
        check(shard);
      }
    }
    checkGuards();
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
    for (Piece piece : pieces) {
      requireAll(SCRIBBLE, piece.memory(), piece, "inside");
    }
    checkGuards();
  }

  /**
   * Checks that no byte around the segments was changed.
   *
   * @throws AssertionError naming the segment beside which a byte was changed
   */
  public void checkGuards() {
    for (Piece piece : pieces) {
      MemorySegment all = piece.region().segment();
      long end = piece.offset() + piece.size();
      requireAll(GUARD, all.asSlice(piece.offset() - GUARD_BYTES, GUARD_BYTES), piece, "before");
      requireAll(GUARD, all.asSlice(end, GUARD_BYTES), piece, "after");
    }
  }

  private void requireAll(byte expected, MemorySegment memory, Piece piece, String where) {
    for (long i = 0; i < memory.byteSize(); i++) {
      byte found = memory.get(ValueLayout.JAVA_BYTE, i);
      if (found != expected) {
        int shard = piece.shard();
        throw new AssertionError(
            "memory was changed %s segment %d of shard %d of block %s, at byte %d: 0x%02x"
                .formatted(where, piece.segment(), shards[shard], ids.hex(shard), i, found));
      }
    }
  }
}

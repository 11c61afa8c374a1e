package ucm.api;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;

/**
 * What to move: for each shard its block, its index in the block, and where its bytes are in memory.
 *
 * <p>The memory of a shard is one or more <em>segments</em>. A {@linkplain #scattered scattered}
 * transfer has one segment per tensor of the layout, as an engine's KV cache does; in a {@linkplain
 * #packed packed} transfer each shard lies in one stretch, tensor after tensor, as a slot of a buffer
 * pool does, and is one segment. Stores loop over segments and need not know which it is.
 *
 * <p>All of it is packed into arrays of the transfer; nothing is an object per shard. Immutable and
 * thread-safe. The memory is owned by the caller, who keeps it alive until the task has completed.
 */
public final class Transfer {

  private static final int HOST = -1;
  // In place of a device: without shards it is on all of them, and on none when they differ.
  private static final int NOWHERE = -2;
  private static final int MIXED = -3;

  private final BlockLayout layout;
  private final BlockIds ids;
  private final int[] shardIndexes;
  private final int segments;
  private final MemoryRegion[] regions;
  private final int[] regionOfPiece;
  private final long[] offsets;
  private final int device;
  private final long event;
  private final ShardListener listener;

  private Transfer(Builder from, ShardListener listener) {
    from.trim();
    this.layout = from.layout;
    this.segments = from.segments;
    this.ids = BlockIds.wrap(from.words);
    this.shardIndexes = from.shardIndexes;
    this.regions = Arrays.copyOf(from.regions, from.regionCount);
    this.regionOfPiece = from.regionOfPiece;
    this.offsets = from.offsets;
    this.device = deviceOf(regions);
    this.event = from.event;
    this.listener = listener;
  }

  private static int deviceOf(MemoryRegion[] regions) {
    int device = NOWHERE;
    for (MemoryRegion region : regions) {
      device = device == NOWHERE || device == region.deviceId() ? region.deviceId() : MIXED;
    }
    return device;
  }

  /** Starts a transfer with one segment per tensor. */
  public static Builder scattered(BlockLayout layout) {
    return new Builder(layout, layout.tensorCount());
  }

  /** Starts a transfer in which each shard is one segment. */
  public static Builder packed(BlockLayout layout) {
    return new Builder(layout, 1);
  }

  /** The layout the transfer was made for. */
  public BlockLayout layout() {
    return layout;
  }

  /** How many shards. */
  public int shardCount() {
    return ids.size();
  }

  /** Bytes of all shards together. */
  public long byteSize() {
    return shardCount() * layout.shardSize();
  }

  /** The block of each shard; the id of a block of which several shards are moved is there often. */
  public BlockIds ids() {
    return ids;
  }

  /** Which shard of its block shard i is. */
  public int shardIndex(int shard) {
    return shardIndexes[shard];
  }

  /** In how many segments each shard lies: {@link BlockLayout#tensorCount()}, or 1 when packed. */
  public int pieceCount() {
    return segments;
  }

  /** Bytes of a segment, the same for every shard. */
  public long pieceSize(int segment) {
    return segments == 1 ? layout.shardSize() : layout.tensorSize(segment);
  }

  /** The memory a segment lies in. */
  public MemoryRegion region(int shard, int segment) {
    return regions[regionOfPiece[piece(shard, segment)]];
  }

  /** Where in its region a segment starts, in bytes. */
  public long offset(int shard, int segment) {
    return offsets[piece(shard, segment)];
  }

  private int piece(int shard, int segment) {
    return shard * segments + Objects.checkIndex(segment, segments);
  }

  /** The bytes of a segment in host memory. */
  public MemorySegment segment(int shard, int segment) {
    return region(shard, segment).segment().asSlice(offset(shard, segment), pieceSize(segment));
  }

  /** Whether all of the memory is host memory. */
  public boolean isHost() {
    return device == HOST || device == NOWHERE;
  }

  /** Whether all of the memory is memory of one device. */
  public boolean isOn(int deviceId) {
    return device == NOWHERE || (deviceId >= 0 && device == deviceId);
  }

  /** The event that must have come before the memory is touched; see {@link Builder#after}. */
  public long event() {
    return event;
  }

  /** Told of each shard. */
  public ShardListener listener() {
    return listener;
  }

  /**
   * Some shards as a transfer of their own, in the same memory and after the same event.
   *
   * @param shards which ones: shard i of the transfer made is shard {@code shards[i]} of this one
   * @param told hears of them, by their numbers in the transfer made
   */
  public Transfer select(int[] shards, ShardListener told) {
    Builder some = new Builder(layout, segments).expect(shards.length).after(event);
    for (int shard : shards) {
      some.shard(ids, shard, shardIndexes[shard]);
      for (int segment = 0; segment < segments; segment++) {
        some.piece(region(shard, segment), offset(shard, segment));
      }
    }
    return some.build(told);
  }

  @Override
  public String toString() {
    return "Transfer[" + shardCount() + " shards, " + byteSize() + " bytes]";
  }

  /** Collects the shards of a transfer. Not thread-safe; may be used for one transfer after another. */
  public static final class Builder {

    private static final int FIRST_CAPACITY = 16;

    private final BlockLayout layout;
    private final int segments;
    // These are the next transfer's.
    private long[] words = {};
    private int[] shardIndexes = {};
    private int[] regionOfPiece = {};
    private long[] offsets = {};
    private MemoryRegion[] regions = new MemoryRegion[2];
    private int shards;
    private int placed;
    private int regionCount;
    private int lastRegion;
    private long event;

    private Builder(BlockLayout layout, int segments) {
      this.layout = layout;
      this.segments = segments;
    }

    /** Has room for so many shards at once, so that a transfer of just these is not copied. */
    public Builder expect(int shardCount) {
      reserve(Math.max(shards, shardCount));
      return this;
    }

    /**
     * Begins the next shard; {@link #piece} must follow once per segment.
     *
     * @param ids a list that holds the shard's block
     * @param i the index of the block in that list
     * @param shardIndex which shard of the block
     */
    public Builder shard(BlockIds ids, int i, int shardIndex) {
      return shard(ids.high(i), ids.low(i), shardIndex);
    }

    /** Begins the next shard, its block given as two big-endian words. */
    public Builder shard(long idHigh, long idLow, int shardIndex) {
      requireComplete();
      Objects.checkIndex(shardIndex, layout.shardCount());
      if (shards == shardIndexes.length) {
        reserve(Math.max(FIRST_CAPACITY, 2 * shards));
      }
      words[2 * shards] = idHigh;
      words[2 * shards + 1] = idLow;
      shardIndexes[shards++] = shardIndex;
      placed = 0;
      return this;
    }

    /**
     * Places the next segment of the shard just begun.
     *
     * @param region the memory it lies in
     * @param offset where it starts there, in bytes
     * @throws IndexOutOfBoundsException when the segment does not lie within the region
     */
    public Builder piece(MemoryRegion region, long offset) {
      if (shards == 0 || placed == segments) {
        throw new IllegalStateException(
            "a shard has " + segments + " segments; begin the next shard first");
      }
      long size = segments == 1 ? layout.shardSize() : layout.tensorSize(placed);
      Objects.checkFromIndexSize(offset, size, region.byteSize());
      int piece = (shards - 1) * segments + placed++;
      regionOfPiece[piece] = indexOf(region);
      offsets[piece] = offset;
      return this;
    }

    private int indexOf(MemoryRegion region) {
      // Engines walk their tensors in the same order for every block: the region is most often the
      // one used last or the one after it.
      for (int step = 0; step < regionCount; step++) {
        int i = (lastRegion + step) % regionCount;
        if (regions[i] == region) {
          lastRegion = i;
          return i;
        }
      }
      if (regionCount == regions.length) {
        regions = Arrays.copyOf(regions, 2 * regionCount);
      }
      regions[regionCount] = region;
      lastRegion = regionCount;
      return regionCount++;
    }

    /**
     * Names an event of the device that the memory belongs to: its memory is not touched before the
     * event has come. An engine that dumps what it computes records one after the computation, and
     * need not wait for it. The event must have been recorded, and must not be destroyed or recorded
     * again until the task has completed. An event that never comes keeps the task open beyond its
     * deadline, as a device cannot be told to forget what it was told to do.
     *
     * @param event the driver's own handle of it (for CUDA, the value of a {@code CUevent}); 0 for none
     */
    public Builder after(long event) {
      this.event = event;
      return this;
    }

    /** Makes the transfer, without a listener for single shards. */
    public Transfer build() {
      return build(ShardListener.NONE);
    }

    /**
     * Makes the transfer and empties the builder.
     *
     * @throws IllegalStateException when the last shard lacks segments
     */
    public Transfer build(ShardListener listener) {
      requireComplete();
      Transfer transfer = new Transfer(this, listener);
      Arrays.fill(regions, 0, regionCount, null);
      words = new long[0];
      shards = 0;
      reserve(0);
      regionCount = 0;
      lastRegion = 0;
      event = 0;
      return transfer;
    }

    private void requireComplete() {
      if (shards > 0 && placed < segments) {
        throw new IllegalStateException(
            "shard " + (shards - 1) + " has " + placed + " of " + segments + " segments");
      }
    }

    private void trim() {
      if (shards < shardIndexes.length) {
        reserve(shards);
      }
    }

    private void reserve(int capacity) {
      words = Arrays.copyOf(words, 2 * capacity);
      shardIndexes = Arrays.copyOf(shardIndexes, capacity);
      regionOfPiece = Arrays.copyOf(regionOfPiece, capacity * segments);
      offsets = Arrays.copyOf(offsets, capacity * segments);
    }
  }
}

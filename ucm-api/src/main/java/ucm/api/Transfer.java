package ucm.api;

import java.util.Arrays;
import java.util.Objects;

/**
 * What to move: for each shard its block, its index in the block, and where its bytes are in memory.
 *
 * <p>The memory of a shard is one or more <em>pieces</em>. A {@linkplain #scattered scattered}
 * transfer has one piece per tensor of the layout, as an engine's KV cache does; in a {@linkplain
 * #packed packed} transfer each shard lies in one stretch, tensor after tensor, as a slot of a buffer
 * pool does, and is one piece. Stores loop over pieces and need not know which it is.
 *
 * <p>All of it is packed into arrays; nothing is an object per shard. Immutable and thread-safe. The
 * memory is owned by the caller, who keeps it alive until the task is terminal.
 */
public final class Transfer {

  private final BlockLayout layout;
  private final BlockIds ids;
  private final int[] shardIndexes;
  private final int pieces;
  private final MemoryRegion[] regions;
  private final int[] regionOfPiece;
  private final long[] offsets;
  private final long event;
  private final ShardListener listener;

  private Transfer(Builder from, ShardListener listener) {
    int shards = from.shards;
    this.layout = from.layout;
    this.pieces = from.pieces;
    this.ids = BlockIds.wrap(Arrays.copyOf(from.words, 2 * shards));
    this.shardIndexes = Arrays.copyOf(from.shardIndexes, shards);
    this.regions = Arrays.copyOf(from.regions, from.regionCount);
    this.regionOfPiece = Arrays.copyOf(from.regionOfPiece, shards * pieces);
    this.offsets = Arrays.copyOf(from.offsets, shards * pieces);
    this.event = from.event;
    this.listener = listener;
  }

  /** Starts a transfer with one piece per tensor. */
  public static Builder scattered(BlockLayout layout) {
    return new Builder(layout, layout.tensorCount());
  }

  /** Starts a transfer in which each shard is one piece. */
  public static Builder packed(BlockLayout layout) {
    return new Builder(layout, 1);
  }

  /** The layout the transfer was made for. */
  public BlockLayout layout() {
    return layout;
  }

  /** How many shards. */
  public int shardCount() {
    return shardIndexes.length;
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

  /** In how many pieces each shard lies: {@link BlockLayout#tensorCount()}, or 1 when packed. */
  public int pieceCount() {
    return pieces;
  }

  /** Bytes of a piece, the same for every shard. */
  public long pieceSize(int piece) {
    return pieces == 1 ? layout.shardSize() : layout.tensorSize(piece);
  }

  /** The memory a piece lies in. */
  public MemoryRegion region(int shard, int piece) {
    return regions[regionOfPiece[shard * pieces + piece]];
  }

  /** Where in its region a piece starts, in bytes. */
  public long offset(int shard, int piece) {
    return offsets[shard * pieces + piece];
  }

  /** Whether all of the memory is host memory. */
  public boolean isHost() {
    for (MemoryRegion region : regions) {
      if (!region.isHost()) {
        return false;
      }
    }
    return true;
  }

  /** Whether all of the memory is memory of one device. */
  public boolean isOn(int deviceId) {
    for (MemoryRegion region : regions) {
      if (region.isHost() || region.deviceId() != deviceId) {
        return false;
      }
    }
    return true;
  }

  /** The event that must have come before the memory is touched; see {@link Builder#after}. */
  public long event() {
    return event;
  }

  /** Who is told of each shard. */
  public ShardListener listener() {
    return listener;
  }

  @Override
  public String toString() {
    return "Transfer[" + shardCount() + " shards, " + byteSize() + " bytes]";
  }

  /** Collects the shards of a transfer. Not thread-safe; may be used for one transfer after another. */
  public static final class Builder {

    private static final int FIRST_CAPACITY = 16;
    private static final int FIRST_REGIONS = 2;

    private final BlockLayout layout;
    private final int pieces;
    private long[] words = new long[2 * FIRST_CAPACITY];
    private int[] shardIndexes = new int[FIRST_CAPACITY];
    private int[] regionOfPiece;
    private long[] offsets;
    private MemoryRegion[] regions = new MemoryRegion[FIRST_REGIONS];
    private int regionCount;
    private int lastRegion;
    private int shards;
    private int placed;
    private long event;

    private Builder(BlockLayout layout, int pieces) {
      this.layout = layout;
      this.pieces = pieces;
      this.regionOfPiece = new int[FIRST_CAPACITY * pieces];
      this.offsets = new long[FIRST_CAPACITY * pieces];
    }

    /**
     * Begins the next shard; {@link #piece} must follow once per piece.
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
        grow();
      }
      words[2 * shards] = idHigh;
      words[2 * shards + 1] = idLow;
      shardIndexes[shards++] = shardIndex;
      placed = 0;
      return this;
    }

    /**
     * Places the next piece of the shard just begun.
     *
     * @param region the memory it lies in
     * @param offset where it starts there, in bytes
     * @throws IndexOutOfBoundsException when the piece does not lie within the region
     */
    public Builder piece(MemoryRegion region, long offset) {
      if (shards == 0 || placed == pieces) {
        throw new IllegalStateException(
            "a shard has " + pieces + " pieces; begin the next shard first");
      }
      long size = pieces == 1 ? layout.shardSize() : layout.tensorSize(placed);
      Objects.checkFromIndexSize(offset, size, region.byteSize());
      int at = (shards - 1) * pieces + placed++;
      regionOfPiece[at] = indexOf(region);
      offsets[at] = offset;
      return this;
    }

    /**
     * Names an event of the device that the memory belongs to: its memory is not touched before the
     * event has come. An engine that dumps what it computes records one behind the computation, and
     * need not wait for it. The event must have been recorded, and must not be destroyed or recorded
     * anew until the task is terminal. An event that never comes keeps the task open beyond its
     * deadline, as a device cannot be told to forget what it was told to do.
     *
     * @param event the driver's own handle of it (for CUDA, the value of a {@code CUevent}); 0 for none
     */
    public Builder after(long event) {
      this.event = event;
      return this;
    }

    /** Makes the transfer; nobody is told of single shards. */
    public Transfer build() {
      return build(ShardListener.NONE);
    }

    /**
     * Makes the transfer and empties the builder.
     *
     * @throws IllegalStateException when the last shard lacks pieces
     */
    public Transfer build(ShardListener listener) {
      requireComplete();
      Transfer transfer = new Transfer(this, listener);
      shards = 0;
      regions = new MemoryRegion[FIRST_REGIONS];
      regionCount = 0;
      lastRegion = 0;
      event = 0;
      return transfer;
    }

    private void requireComplete() {
      if (shards > 0 && placed < pieces) {
        throw new IllegalStateException(
            "shard " + (shards - 1) + " has " + placed + " of " + pieces + " pieces");
      }
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

    private void grow() {
      int capacity = 2 * shards;
      words = Arrays.copyOf(words, 2 * capacity);
      shardIndexes = Arrays.copyOf(shardIndexes, capacity);
      regionOfPiece = Arrays.copyOf(regionOfPiece, capacity * pieces);
      offsets = Arrays.copyOf(offsets, capacity * pieces);
    }
  }
}

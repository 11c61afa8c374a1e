package ucm.api;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Objects;

/**
 * What to move: for each shard its block, its index in the block, and where its bytes are in memory.
 *
 * <p>The memory of a shard is one or more <em>segments</em>. A {@linkplain #scattered scattered}
 * transfer has one segment per tensor of the layout, as an engine's KV cache does; in a {@linkplain
 * #packed packed} transfer each shard lies in one stretch, tensor after tensor, as a slot of a buffer
 * pool does, and is one segment. Stores loop over segments and need not know which it is.
 *
 * <p>All of it is packed into arrays; nothing is an object per shard. Immutable and thread-safe. The
 * memory is owned by the caller, who keeps it alive until the task has completed.
 *
 * <p>Until the task has completed, and no longer, a store may ask where the bytes of a shard are
 * ({@link #region}, {@link #offset}): the caller may have a use for the {@link Places} of a {@linkplain
 * #packedRange range} or {@linkplain #packedSelection selection} then, as it has for the memory
 * itself. All else, the ids and shard indexes among it, stays valid for ever.
 */
public final class Transfer {

  private final BlockLayout layout;
  private final BlockIds ids;
  // Shared with the transfers made of this one, as are the ids: both of a shard are at one
  // position.
  private final int[] shardIndexes;
  private final int segments;
  private final Places places;
  private final int use;
  private final int device;
  private final long event;
  private final ShardListener listener;

  private Transfer(Builder from, ShardListener listener) {
    this.layout = from.layout;
    this.segments = from.segments;
    this.ids = BlockIds.wrap(Arrays.copyOf(from.words, 2 * from.shards));
    this.shardIndexes = Arrays.copyOf(from.shardIndexes, from.shards);
    this.places = from.places.copy();
    this.use = places.use(layout, places.size());
    this.device = places.device();
    this.event = from.event;
    this.listener = listener;
  }

  private Transfer(Transfer of, BlockIds part, Places places, ShardListener listener) {
    this.layout = of.layout;
    this.segments = 1;
    this.ids = part;
    this.shardIndexes = of.shardIndexes;
    this.places = places;
    this.use = places.use(layout, part.size());
    this.device = places.device();
    this.event = 0;
    this.listener = listener;
  }

  /** Starts a transfer with one segment per tensor. */
  public static Builder scattered(BlockLayout layout) {
    return new Builder(layout, layout.tensorCount());
  }

  /** Starts a transfer in which each shard is one segment. */
  public static Builder packed(BlockLayout layout) {
    return new Builder(layout, 1);
  }

  /**
   * Makes a packed transfer of neighbouring shards of another one, which lie elsewhere: a stage that
   * keeps bytes in memory of its own moves them on with it. Shares the ids and shard indexes of the
   * other transfer; nothing is copied, and nothing allocated per shard.
   *
   * @param of names the shards; where they lie there, and its event, is of no interest
   * @param from first shard, inclusive
   * @param to last shard, exclusive
   * @param places where each of them lies, in their order; not to be changed until the task of the
   *     transfer has completed, or was refused
   * @param listener is told of each shard, by its index in the range
   * @throws IndexOutOfBoundsException when these are no shards of {@code of}
   * @throws IllegalArgumentException when the places are more or fewer than the shards, or were made
   *     for another layout
   */
  public static Transfer packedRange(
      Transfer of, int from, int to, Places places, ShardListener listener) {
    return new Transfer(of, of.ids.slice(from, to), places, listener);
  }

  /**
   * Makes a packed transfer of some shards of another one; as {@link #packedRange}, but takes a bit
   * and a half for each shard from the first to the last of them, unless they are neighbours.
   *
   * @param from the shard that bit 0 stands for
   * @param some which shards from there on; may be changed afterwards
   * @param places where each of them lies, in their order; not to be changed until the task of the
   *     transfer has completed, or was refused
   * @param listener is told of each shard, by its index among those chosen
   * @throws IndexOutOfBoundsException when these are no shards of {@code of}
   * @throws IllegalArgumentException when the places are more or fewer than the shards, or were made
   *     for another layout
   */
  public static Transfer packedSelection(
      Transfer of, int from, BitSet some, Places places, ShardListener listener) {
    return new Transfer(of, of.ids.select(from, some), places, listener);
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
    return shardIndexes[ids.position(shard)];
  }

  /** In how many segments each shard lies: {@link BlockLayout#tensorCount()}, or 1 when packed. */
  public int pieceCount() {
    return segments;
  }

  /** Bytes of a segment, the same for every shard. */
  public long pieceSize(int segment) {
    return segments == 1 ? layout.shardSize() : layout.tensorSize(segment);
  }

  /** The memory a segment lies in; not to be asked for once the task has completed. */
  public MemoryRegion region(int shard, int segment) {
    return places.region(shard * segments + segment, use);
  }

  /** Where in its region a segment starts, in bytes; not to be asked for once the task has completed. */
  public long offset(int shard, int segment) {
    return places.offset(shard * segments + segment, use);
  }

  /** The bytes of a segment in host memory; not to be asked for once the task has completed. */
  public MemorySegment segment(int shard, int segment) {
    return region(shard, segment).segment().asSlice(offset(shard, segment), pieceSize(segment));
  }

  /** Whether all of the memory is host memory. */
  public boolean isHost() {
    return Places.isHost(device);
  }

  /** Whether all of the memory is memory of one device. */
  public boolean isOn(int deviceId) {
    return device == Places.NOWHERE || (deviceId >= 0 && device == deviceId);
  }

  /** The event that must have come before the memory is touched; see {@link Builder#after}. */
  public long event() {
    return event;
  }

  /** Told of each shard. */
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

    private final BlockLayout layout;
    private final int segments;
    private long[] words = new long[2 * FIRST_CAPACITY];
    private int[] shardIndexes = new int[FIRST_CAPACITY];
    private final Places places;
    private int shards;
    private int placed;
    private long event;

    private Builder(BlockLayout layout, int segments) {
      this.layout = layout;
      this.segments = segments;
      this.places = new Places(layout);
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
        grow();
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
      places.add(region, offset, segments == 1 ? layout.shardSize() : layout.tensorSize(placed));
      placed++;
      return this;
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
      shards = 0;
      places.clear();
      event = 0;
      return transfer;
    }

    private void requireComplete() {
      if (shards > 0 && placed < segments) {
        throw new IllegalStateException(
            "shard " + (shards - 1) + " has " + placed + " of " + segments + " segments");
      }
    }

    private void grow() {
      int capacity = 2 * shards;
      words = Arrays.copyOf(words, 2 * capacity);
      shardIndexes = Arrays.copyOf(shardIndexes, capacity);
    }
  }
}

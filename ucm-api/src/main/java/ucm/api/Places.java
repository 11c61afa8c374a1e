package ucm.api;

import java.util.Arrays;
import java.util.Objects;

/**
 * Where the shards of one transfer after another lie in memory, for a stage that moves what it was
 * handed to and from memory of its own; see {@link Transfer#packedRange} and {@link
 * Transfer#packedSelection}. It grows as needed and is reused, so that nothing is allocated for the
 * places of the next transfer.
 *
 * <p>A transfer reads the places it was made with. They must not be {@linkplain #clear cleared} until
 * its task has completed, or was refused: as a store touches no memory after that, it has no use for
 * places either, and one that asks for them nevertheless gets an exception. Holds on to the regions,
 * but not to the transfer. Not thread-safe: used by one thread after another, each of which hands it
 * on safely.
 */
public final class Places {

  /** In place of a device: there are no places, so all devices have all of them. */
  static final int NOWHERE = -2;

  private static final int HOST = -1;
  private static final int MIXED = -3;
  private static final int FIRST_CAPACITY = 16;
  private static final int FIRST_REGIONS = 2;

  private final BlockLayout layout;
  private MemoryRegion[] regions;
  private int[] regionOfPlace;
  private long[] offsets;
  private int size;
  private int regionCount;
  private int lastRegion;
  private int device = NOWHERE;
  // How often they were cleared, and whether a transfer has been made with them since.
  private int uses;
  private boolean used;

  /** No places yet, for shards of a layout. */
  public Places(BlockLayout layout) {
    this.layout = layout;
    this.regions = new MemoryRegion[FIRST_REGIONS];
    this.regionOfPlace = new int[FIRST_CAPACITY];
    this.offsets = new long[FIRST_CAPACITY];
  }

  private Places(Places of) {
    this.layout = of.layout;
    this.regions = Arrays.copyOf(of.regions, of.regionCount);
    this.regionOfPlace = Arrays.copyOf(of.regionOfPlace, of.size);
    this.offsets = Arrays.copyOf(of.offsets, of.size);
    this.size = of.size;
    this.regionCount = of.regionCount;
    this.device = of.device;
  }

  /**
   * Places the next shard, which lies in one stretch.
   *
   * @param region the memory it lies in
   * @param offset where it starts there, in bytes
   * @throws IndexOutOfBoundsException when the shard does not lie within the region
   * @throws IllegalStateException when a transfer was made with the places; clear them first
   */
  public Places add(MemoryRegion region, long offset) {
    add(region, offset, layout.shardSize());
    return this;
  }

  /** How many places. */
  public int size() {
    return size;
  }

  /** Forgets all places. The transfer made with them, if any, has none any more. */
  public void clear() {
    Arrays.fill(regions, 0, regionCount, null);
    size = 0;
    regionCount = 0;
    lastRegion = 0;
    device = NOWHERE;
    uses++;
    used = false;
  }

  /** Places a segment of some size. */
  void add(MemoryRegion region, long offset, long pieceSize) {
    if (used) {
      throw new IllegalStateException(
          "a transfer was made with these " + size + " places: clear them before the next one");
    }
    Objects.checkFromIndexSize(offset, pieceSize, region.byteSize());
    if (size == offsets.length) {
      int capacity = Math.max(FIRST_CAPACITY, 2 * size);
      regionOfPlace = Arrays.copyOf(regionOfPlace, capacity);
      offsets = Arrays.copyOf(offsets, capacity);
    }
    regionOfPlace[size] = indexOf(region);
    offsets[size++] = offset;
  }

  /**
   * Checks that these are the places of a transfer that is about to be made, and keeps others from
   * being added.
   *
   * @return names them; {@link #region} and {@link #offset} want it
   */
  int use(BlockLayout wanted, int shards) {
    if (!layout.equals(wanted)) {
      throw new IllegalArgumentException(
          "places for shards of " + layout + " do not fit a transfer of " + wanted);
    }
    if (size != shards) {
      throw new IllegalArgumentException(
          "a transfer of " + shards + " shards wants a place for each; found " + size + " places");
    }
    used = true;
    return uses;
  }

  /** A copy of what is there, to be kept for ever. */
  Places copy() {
    return new Places(this);
  }

  /** Which device all of them are on; {@link #NOWHERE} when there are none. */
  int device() {
    return device;
  }

  /** Whether all of some memory is memory of the host, by its {@link #device}. */
  static boolean isHost(int device) {
    return device == HOST || device == NOWHERE;
  }

  MemoryRegion region(int place, int use) {
    requireUse(use);
    return regions[regionOfPlace[Objects.checkIndex(place, size)]];
  }

  long offset(int place, int use) {
    requireUse(use);
    return offsets[Objects.checkIndex(place, size)];
  }

  private void requireUse(int use) {
    if (use != uses) {
      throw new IllegalStateException(
          "the places of this transfer are reused: its task has completed, and a store must not"
              + " touch its memory any more");
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
    device = regionCount == 0 || device == region.deviceId() ? region.deviceId() : MIXED;
    lastRegion = regionCount;
    return regionCount++;
  }

  @Override
  public String toString() {
    return "Places[" + size + " in " + regionCount + " regions]";
  }
}

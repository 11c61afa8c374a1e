package ucm.store.cache.shared;

import ucm.api.BlockLayout;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.eviction.BlockTable;

/**
 * Where everything lies in the segment that workers share; docs/shared-buffer.md has the picture.
 *
 * <p>A <em>slab</em> is the place of one block: as many neighbouring slots as a block has shards. A
 * process that attaches computes the same numbers from its own configuration and compares the sizes in
 * the header, so that nothing else needs to be stored.
 *
 * @param shardSize bytes of a shard
 * @param shards shards in a block
 * @param slabs blocks that have a place
 * @param stripes parts of the pool, a power of two
 * @param fingerprint of the block layout
 */
public record SegmentLayout(long shardSize, int shards, int slabs, int stripes, long fingerprint) {

  /** The first eight bytes: {@code UCMSHARE} read as a little-endian number. */
  static final long MAGIC = 0x455241_48534D4355L;

  /** Version of this layout. */
  static final int VERSION = 1;

  /** Most processes that can be attached at once; a bit each in the words of slots and slabs. */
  static final int OWNERS = CacheConfig.MAX_LOCAL_RANKS;

  // The header.
  static final long MAGIC_AT = 0;
  static final long VERSION_AT = 8;
  static final long READY_AT = 12;
  static final long BOOT_HIGH_AT = 16;
  static final long BOOT_LOW_AT = 24;
  static final long BYTES_AT = 32;
  static final long SHARD_SIZE_AT = 40;
  static final long SHARDS_AT = 48;
  static final long SLABS_AT = 52;
  static final long STRIPES_AT = 56;
  static final long FINGERPRINT_AT = 64;
  // On a line of its own: read at each release.
  static final long WANTING_AT = 128;
  static final long HEADER_BYTES = 4096;

  // An entry of the table of owners.
  static final long OWNER_BYTES = 128;
  static final long OWNER_STATE = 0;
  static final long OWNER_EVENT = 4;
  static final long OWNER_PID = 8;
  static final long OWNER_INCARNATION = 16;
  static final long OWNER_DEAD_SINCE = 24;

  // The head of a stripe.
  static final long STRIPE_BYTES = 128;
  static final long STRIPE_LOCK = 0;
  static final long STRIPE_FREE = 4;
  static final long STRIPE_VERSION = 8;
  static final long STRIPE_CLOCK = 16;

  // What is known of a slab.
  static final long SLAB_BYTES = 64;
  static final long SLAB_WORD = 0;
  static final long SLAB_HIGH = 8;
  static final long SLAB_LOW = 16;
  static final long SLAB_NEXT = 24;
  static final long SLAB_STAMP = 32;

  // Locked bytes, not read or written: one while attaching or leaving, and one for each living
  // owner.
  public static final long GATE_LOCK = 0;
  static final long OWNER_LOCK = 1;

  private static final int SLABS_PER_STRIPE = 4096;
  private static final int MAX_STRIPES = 64;
  private static final long BUCKETS_PER_SLAB = 2;
  private static final long ALIGNMENT = 2L << 20;

  /** The layout of a pool for blocks of a kind, in so many slabs. */
  static SegmentLayout of(BlockLayout blocks, int slabs) {
    int stripes = Integer.highestOneBit(Math.clamp(slabs / SLABS_PER_STRIPE, 1, MAX_STRIPES));
    long fingerprint = blocks.blockSize();
    for (int tensor = 0; tensor < blocks.tensorCount(); tensor++) {
      fingerprint = BlockTable.hash(fingerprint, blocks.tensorSize(tensor));
    }
    return new SegmentLayout(blocks.shardSize(), blocks.shardCount(), slabs, stripes, fingerprint);
  }

  /** Bytes from one slot to the next. */
  long stride() {
    return PoolMemory.stride(shardSize);
  }

  int slots() {
    return slabs * shards;
  }

  /** Slabs of each stripe but the last, which has what is left. */
  int slabsPerStripe() {
    return slabs / stripes;
  }

  /** The first slab of a stripe; of the number of stripes: the end. */
  int firstSlab(int stripe) {
    return stripe == stripes ? slabs : stripe * slabsPerStripe();
  }

  int stripeOfSlab(int slab) {
    return Math.min(slab / slabsPerStripe(), stripes - 1);
  }

  /** Heads of chains of a stripe, a power of two. */
  int buckets() {
    long most = (long) slabs - firstSlab(stripes - 1);
    return (int) Math.min(1 << 30, Long.highestOneBit(BUCKETS_PER_SLAB * most - 1) * 2);
  }

  long ownerAt(int owner) {
    return HEADER_BYTES + owner * OWNER_BYTES;
  }

  long stripeAt(int stripe) {
    return ownerAt(OWNERS) + stripe * STRIPE_BYTES;
  }

  long slabAt(int slab) {
    return stripeAt(stripes) + slab * SLAB_BYTES;
  }

  /** Where a stripe's heads of chains are, 4 bytes each. */
  long bucketsAt(int stripe) {
    return slabAt(slabs) + (long) stripe * buckets() * Integer.BYTES;
  }

  long slotWordAt(int slot) {
    return bucketsAt(stripes) + (long) slot * Long.BYTES;
  }

  /** Where the first slot is; at a multiple of a huge page. */
  long slotsAt() {
    return Math.ceilDiv(slotWordAt(slots()), ALIGNMENT) * ALIGNMENT;
  }

  /** Bytes of the whole segment. */
  long byteSize() {
    return slotsAt() + slots() * stride();
  }
}

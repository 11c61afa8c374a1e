package ucm.cli.runtime;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;

/**
 * The paged KV cache of an engine, in host memory: one region per tensor of each layer, cut into
 * pages of one block each.
 *
 * <p>There is no model here, so the bytes of a block are made from its id: every eight bytes of every tensor
 * differ from all others in sight, and a byte out of place is seen. Used by one thread at a time; the memory
 * lives until {@link #close}.
 */
public final class EngineMemory implements AutoCloseable {

  private static final byte POISON = (byte) 0xA5;
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final long STEP = 0x9E3779B97F4A7C15L;
  private static final long TENSOR_STEP = 0xD1B54A32D192ED03L;

  private final BlockLayout layout;
  private final int pages;
  private final Arena arena = Arena.ofShared();
  private final MemoryRegion[] regions;
  // What a tensor is compared with.
  private final MemorySegment expected;

  /** Memory for some blocks; its pages are touched, so that timing does not meet their first use. */
  public EngineMemory(BlockLayout layout, int pages) {
    this.layout = layout;
    this.pages = pages;
    this.regions = new MemoryRegion[layout.shardCount() * layout.tensorCount()];
    try {
      for (int i = 0; i < regions.length; i++) {
        regions[i] = MemoryRegion.host(arena.allocate(pages * tensorSize(i), 4096));
      }
      expected = arena.allocate(layout.shardSize(), Long.BYTES);
      poison();
    } catch (RuntimeException | Error e) {
      arena.close();
      throw e;
    }
  }

  private long tensorSize(int region) {
    return layout.tensorSize(region % layout.tensorCount());
  }

  public int pages() {
    return pages;
  }

  public long blockSize() {
    return layout.blockSize();
  }

  /** How many shards a block has; {@link #transfer} names them block by block. */
  public int shardsPerBlock() {
    return layout.shardCount();
  }

  /** All shards of blocks {@code from} (inclusive) to {@code to} (exclusive); block i is in page i. */
  public Transfer transfer(BlockIds ids, int from, int to) {
    return transfer(ids, from, to, 0, layout.shardCount());
  }

  /** The same of some shards alone, as those of a layer are. */
  public Transfer transfer(BlockIds ids, int from, int to, int firstShard, int endShard) {
    Transfer.Builder builder = Transfer.scattered(layout);
    int tensors = layout.tensorCount();
    for (int block = from; block < to; block++) {
      for (int shard = firstShard; shard < endShard; shard++) {
        builder.shard(ids, block, shard);
        for (int tensor = 0; tensor < tensors; tensor++) {
          builder.piece(regions[shard * tensors + tensor], block * layout.tensorSize(tensor));
        }
      }
    }
    return builder.build();
  }

  /** Overwrites everything, so that bytes left from before cannot pass for loaded ones. */
  public void poison() {
    for (MemoryRegion region : regions) {
      region.segment().fill(POISON);
    }
  }

  /** Writes the bytes of blocks into their pages, as a prefill would. */
  public void fill(BlockIds ids, int from, int to) {
    for (int block = from; block < to; block++) {
      for (int i = 0; i < regions.length; i++) {
        write(tensor(i, block), seed(ids, block, i));
      }
    }
  }

  /** Compares every byte of blocks with what was dumped; throws at the first wrong place. */
  public void verify(BlockIds ids, int from, int to) {
    for (int block = from; block < to; block++) {
      for (int i = 0; i < regions.length; i++) {
        MemorySegment found = tensor(i, block);
        MemorySegment right = expected.asSlice(0, found.byteSize());
        write(right, seed(ids, block, i));
        long wrong = right.mismatch(found);
        if (wrong >= 0) {
          throw new WrongBytesException(
              "block %s was loaded with a wrong byte: tensor %s, offset %s"
                  .formatted(ids.hex(block), i, wrong));
        }
      }
    }
  }

  private static void write(MemorySegment bytes, long seed) {
    long whole = bytes.byteSize() & -Long.BYTES;
    long value = seed;
    for (long at = 0; at < whole; at += Long.BYTES) {
      bytes.set(LONG, at, value);
      value += STEP;
    }
    for (long at = whole; at < bytes.byteSize(); at++) {
      bytes.set(ValueLayout.JAVA_BYTE, at, (byte) (value >>> (8 * (at - whole))));
    }
  }

  private long seed(BlockIds ids, int index, int region) {
    return ids.high(index) + Long.rotateLeft(ids.low(index), 32) + region * TENSOR_STEP;
  }

  private MemorySegment tensor(int region, int page) {
    long size = tensorSize(region);
    return regions[region].segment().asSlice(page * size, size);
  }

  @Override
  public void close() {
    arena.close();
  }

  /** A loaded block is not what was dumped: the one unforgivable fault. */
  public static final class WrongBytesException extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public WrongBytesException(String message) {
      super(message);
    }
  }
}

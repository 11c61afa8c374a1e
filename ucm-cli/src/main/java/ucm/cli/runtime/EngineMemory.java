package ucm.cli.runtime;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;

/**
 * The paged KV cache of an engine, in host memory: one region per tensor of each layer, cut into
 * pages of one block each.
 *
 * <p>There is no model here, so the bytes of a block are made from its id, see {@link KvPattern}. Used by one thread; the
 * memory lives until {@link #close}.
 */
public final class EngineMemory implements AutoCloseable {

  private final BlockLayout layout;
  private final int pages;
  private final Arena arena = Arena.ofShared();
  private final MemoryRegion[] regions;

  /** Memory for some blocks; its pages are touched, so that timing does not meet their first use. */
  public EngineMemory(BlockLayout layout, int pages) {
    this.layout = layout;
    this.pages = pages;
    this.regions = new MemoryRegion[layout.shardCount() * layout.tensorCount()];
    for (int i = 0; i < regions.length; i++) {
      long bytes = pages * layout.tensorSize(i % layout.tensorCount());
      regions[i] = MemoryRegion.host(arena.allocate(bytes, 4096));
    }
    poison();
  }

  /** Overwrites everything, so that bytes left from before cannot pass for loaded ones. */
  public void poison() {
    for (MemoryRegion region : regions) {
      region.segment().fill(KvPattern.POISON);
    }
  }

  /** How many blocks fit. */
  public int pages() {
    return pages;
  }

  /** Bytes of a block. */
  public long blockSize() {
    return layout.blockSize();
  }

  /** How many shards a block has; {@link #transfer} names them block by block. */
  public int shardsPerBlock() {
    return layout.shardCount();
  }

  /** All shards of blocks {@code from} (inclusive) to {@code to} (exclusive); block i is in page i. */
  public Transfer transfer(BlockIds ids, int from, int to) {
    Transfer.Builder builder = Transfer.scattered(layout);
    for (int block = from; block < to; block++) {
      for (int shard = 0; shard < layout.shardCount(); shard++) {
        add(builder, ids, block, shard);
      }
    }
    return builder.build();
  }

  /** One shard of each of blocks {@code from} (inclusive) to {@code to} (exclusive), as a layer is. */
  public Transfer layer(BlockIds ids, int from, int to, int shard) {
    Transfer.Builder builder = Transfer.scattered(layout);
    for (int block = from; block < to; block++) {
      add(builder, ids, block, shard);
    }
    return builder.build();
  }

  private void add(Transfer.Builder builder, BlockIds ids, int block, int shard) {
    builder.shard(ids, block, shard);
    int tensors = layout.tensorCount();
    for (int tensor = 0; tensor < tensors; tensor++) {
      builder.piece(regions[shard * tensors + tensor], block * layout.tensorSize(tensor));
    }
  }

  /** Writes the bytes of blocks into their pages, as a prefill would. */
  public void fill(BlockIds ids, int from, int to) {
    for (int block = from; block < to; block++) {
      for (int i = 0; i < regions.length; i++) {
        KvPattern.fill(page(i, block), KvPattern.seed(ids.high(block), ids.low(block), i));
      }
    }
  }

  /** Compares every byte of blocks with what was dumped; throws at the first wrong place. */
  public void verify(BlockIds ids, int from, int to) {
    for (int block = from; block < to; block++) {
      for (int i = 0; i < regions.length; i++) {
        long wrong =
            KvPattern.firstWrong(
                page(i, block), KvPattern.seed(ids.high(block), ids.low(block), i));
        if (wrong >= 0) {
          throw new WrongBytesException(
              "block %s came back with a wrong byte: shard %s, tensor %s, offset %s"
                  .formatted(
                      ids.hex(block), i / layout.tensorCount(), i % layout.tensorCount(), wrong));
        }
      }
    }
  }

  private MemorySegment page(int region, int block) {
    long size = layout.tensorSize(region % layout.tensorCount());
    return regions[region].segment().asSlice(block * size, size);
  }

  @Override
  public void close() {
    arena.close();
  }
}

package ucm.bench.simulator;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.cli.runtime.KvPattern;
import ucm.cli.runtime.WrongBytesException;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;

/**
 * The KV memory of a rank, in host memory: a region for each tensor of each layer, cut into blocks. Its
 * content is {@link KvPattern}. Used by one thread at a time beside the stores; lives until {@link #close}.
 */
public final class KvPages implements AutoCloseable {

  private static final long PAGE_BYTES = 4096;

  private final int part;
  private final Arena arena = Arena.ofShared();
  private final List<MemoryRegion> regions = new ArrayList<>();
  private final List<Long> blockBytes = new ArrayList<>();
  private final KvCaches caches;

  /**
   * Memory for some blocks, all of it touched; the part of blocks is the rank, or 0 on all ranks
   * with MLA.
   */
  public KvPages(KvLayout layout, int part, int blocks) {
    this.part = part;
    List<List<KvTensor>> layers = new ArrayList<>();
    try {
      for (int layer = 0; layer < layout.layers(); layer++) {
        List<KvTensor> tensors = new ArrayList<>();
        for (int tensor = 0; tensor < layout.tensors(layer); tensor++) {
          long bytes = layout.tensorBytes(layer, tensor);
          MemorySegment memory = arena.allocate(blocks * bytes, PAGE_BYTES);
          memory.fill(KvPattern.POISON);
          regions.add(MemoryRegion.host(memory));
          blockBytes.add(bytes);
          tensors.add(KvTensor.dense(regions.getLast(), bytes));
        }
        layers.add(tensors);
      }
    } catch (RuntimeException | Error e) {
      arena.close();
      throw e;
    }
    this.caches = new KvCaches(layers);
  }

  /** As the connector wants them registered. */
  KvCaches caches() {
    return caches;
  }

  /** Overwrites blocks, so that bytes left from before cannot pass for loaded ones. */
  void poison(PageRun run) {
    for (int page : run.pages()) {
      for (int tensor = 0; tensor < regions.size(); tensor++) {
        slice(tensor, page).fill(KvPattern.POISON);
      }
    }
  }

  /** Writes what computing blocks would leave. */
  void fill(PageRun run) {
    for (int i = 0; i < run.pages().length; i++) {
      for (int tensor = 0; tensor < regions.size(); tensor++) {
        KvPattern.fill(slice(tensor, run.pages()[i]), seed(run.ids(), i, tensor));
      }
    }
  }

  /** Compares every byte of a block. */
  void verify(PageRun run, int i) {
    for (int tensor = 0; tensor < regions.size(); tensor++) {
      long wrong = KvPattern.firstWrong(slice(tensor, run.pages()[i]), seed(run.ids(), i, tensor));
      if (wrong >= 0) {
        throw new WrongBytesException(
            "block %s was loaded with a wrong byte: part %s, tensor %s, offset %s"
                .formatted(run.ids().hex(i), part, tensor, wrong));
      }
    }
  }

  private MemorySegment slice(int tensor, int page) {
    long bytes = blockBytes.get(tensor);
    return regions.get(tensor).segment().asSlice(page * bytes, bytes);
  }

  private long seed(BlockIds ids, int i, int tensor) {
    return KvPattern.seed(ids.high(i), ids.low(i), part * regions.size() + tensor);
  }

  /** Frees the memory; the engines that use it must be closed. */
  @Override
  public void close() {
    arena.close();
  }
}

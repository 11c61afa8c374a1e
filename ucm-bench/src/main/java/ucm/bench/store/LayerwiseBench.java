package ucm.bench.store;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchPlan;
import ucm.bench.measure.BenchThreads;
import ucm.bench.measure.CopyLimit;
import ucm.bench.measure.FileLimit;
import ucm.cli.output.Progress;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/**
 * Moves the KV cache of a step layer by layer through {@code Cache|Posix}, as an engine does: all loads
 * are handed in at the start, and each layer is waited for before it is computed; a layer is handed in to be
 * dumped when it is computed. There is no model: the compute is a pause, during which the processors
 * are free for the copies, as they are while a GPU computes.
 *
 * <p>Hot loads find their blocks in the pool. Cold ones go to the files, in the page cache, by a second
 * instance with {@code cache_load_backend_only}. Every loaded byte is compared, outside the timed
 * regions. Used by one thread.
 */
public final class LayerwiseBench implements AutoCloseable {

  private static final double GIB = 1L << 30;
  private static final long SLOT_BYTES = 4096;

  private final BlockLayout layout;
  private final int blocks;
  private final Duration timeout;
  private final Deque<AutoCloseable> owned = new ArrayDeque<>();
  private final Pipeline store;
  private final Pipeline coldStore;
  private final CopyLimit copy;
  private final FileLimit files;
  private final EngineMemory memory;
  private final BenchIds ids = new BenchIds(System.nanoTime());
  private final List<LayerwiseMeasure> hot = new ArrayList<>();
  private final List<LayerwiseMeasure> cold = new ArrayList<>();
  private final List<LayerwiseMeasure> dumps = new ArrayList<>();

  /**
   * Opens the stores and takes the memory.
   *
   * @param folder empty; for the files of the store and of the limit
   * @param computeMillis of a layer, to be simulated
   * @param threads of the limits
   */
  public LayerwiseBench(
      StoreCatalog catalog,
      BlockLayout layout,
      int blocks,
      Path folder,
      List<Double> computeMillis,
      int threads) {
    this.layout = layout;
    this.blocks = blocks;
    for (double millis : computeMillis) {
      hot.add(new LayerwiseMeasure("load, from the pool", "memcpy", millis));
      cold.add(new LayerwiseMeasure("load, from files", "open+pread+close, then memcpy", millis));
      dumps.add(new LayerwiseMeasure("dump, until the engine may go on", "memcpy", millis));
    }
    UcmConfig config = config(folder);
    timeout = EngineConfig.taskTimeout(config);
    try {
      BenchThreads machine = own(new BenchThreads(threads));
      BenchPlan plan = plan(config, folder, threads);
      copy = own(new CopyLimit(plan, machine));
      files = own(new FileLimit(folder.resolve("files"), plan, machine));
      memory = own(new EngineMemory(layout, blocks));
      store = own(Pipeline.open(config, catalog));
      coldStore =
          own(
              Pipeline.open(
                  config.with(
                      Map.of("cache_load_backend_only", true, "unique_id", "ucm-bench-cold"),
                      "engine"),
                  catalog));
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /** Of what the limits need to know: whole blocks, all in one step. */
  private BenchPlan plan(UcmConfig config, Path folder, int threads) {
    return new BenchPlan(
        config, layout, false, folder, blocks, blocks, false, 1, 0, 0, 1, threads, 0);
  }

  private UcmConfig config(Path folder) {
    long slot = Math.ceilDiv(layout.shardSize(), SLOT_BYTES) * SLOT_BYTES;
    // The round's blocks, and those of the dump before that are still being written.
    double gib = 2.5 * blocks * layout.shardCount() * slot / GIB;
    return UcmConfig.of(
            "Cache|Posix",
            Map.of(
                "cache_buffer_capacity_gb",
                gib,
                "storage_backends",
                folder.resolve("store").toString()))
        .with(EngineConfig.of(layout), "engine");
  }

  /** Does some rounds, of which the first do not count. */
  public List<LayerwiseMeasure> run(int warmup, int repeat, Progress progress)
      throws InterruptedException {
    files.round(0);
    double _ = files.write();
    for (int round = 0; round < warmup + repeat; round++) {
      for (int i = 0; i < dumps.size(); i++) {
        progress.at(round * (long) dumps.size() + i);
        round(i, round >= warmup);
      }
    }
    List<LayerwiseMeasure> all = new ArrayList<>(hot);
    all.addAll(cold);
    all.addAll(dumps);
    return all;
  }

  private void round(int which, boolean counts) throws InterruptedException {
    BlockIds round = ids.next(blocks);
    Transfer[] layers = new Transfer[layout.shardCount()];
    for (int layer = 0; layer < layers.length; layer++) {
      layers[layer] = memory.layer(round, 0, round.size(), layer);
    }
    memory.fill(round, 0, blocks);
    double copied = copy.gigabytesPerSecond();
    dump(dumps.get(which), layers, copied, counts);
    requireFlushed();
    memory.poison();
    copied = copy.gigabytesPerSecond();
    load(store, hot.get(which), layers, copied, counts);
    memory.verify(round, 0, blocks);
    memory.poison();
    double read = files.read();
    copied = copy.gigabytesPerSecond();
    load(coldStore, cold.get(which), layers, 1 / (1 / copied + 1 / read), counts);
    memory.verify(round, 0, blocks);
  }

  private void load(
      Store from, LayerwiseMeasure measure, Transfer[] layers, double limit, boolean counts)
      throws InterruptedException {
    Task[] tasks = new Task[layers.length];
    long[] waits = new long[layers.length];
    long[] computes = new long[layers.length];
    long start = System.nanoTime();
    for (int layer = 0; layer < layers.length; layer++) {
      tasks[layer] = from.load(layers[layer]);
    }
    for (int layer = 0; layer < layers.length; layer++) {
      long asked = System.nanoTime();
      tasks[layer].await(timeout).requireOk();
      waits[layer] = System.nanoTime() - asked;
      computes[layer] = compute(measure.computeMillis());
    }
    add(measure, start, waits, computes, limit, counts);
  }

  private void dump(LayerwiseMeasure measure, Transfer[] layers, double limit, boolean counts)
      throws InterruptedException {
    Task[] tasks = new Task[layers.length];
    long[] waits = new long[layers.length];
    long[] computes = new long[layers.length];
    long start = System.nanoTime();
    for (int layer = 0; layer < layers.length; layer++) {
      computes[layer] = compute(measure.computeMillis());
      tasks[layer] = store.dump(layers[layer]);
    }
    for (int layer = 0; layer < layers.length; layer++) {
      long asked = System.nanoTime();
      tasks[layer].await(timeout).requireOk();
      waits[layer] = System.nanoTime() - asked;
    }
    add(measure, start, waits, computes, limit, counts);
  }

  private void add(
      LayerwiseMeasure measure,
      long start,
      long[] waits,
      long[] computes,
      double limit,
      boolean counts) {
    double millis = (System.nanoTime() - start) / 1e6;
    if (counts) {
      double bytesOfALayer = (double) blocks * layout.shardSize();
      measure.add(millis, waits, computes, bytesOfALayer / limit / 1e6);
    }
  }

  private void requireFlushed() throws InterruptedException {
    FlushResult flushed = store.flush(timeout);
    if (!flushed.ok()) {
      throw new StoreException("blocks could not be stored: " + flushed, flushed.cause());
    }
  }

  /** Pauses; says for how many nanoseconds, which is a little more than was asked for. */
  private static long compute(double millis) throws InterruptedException {
    long start = System.nanoTime();
    long asked = (long) (millis * 1e6);
    long spent = 0;
    while (spent < asked) {
      LockSupport.parkNanos(asked - spent);
      if (Thread.interrupted()) {
        throw new InterruptedException("interrupted in a simulated compute");
      }
      spent = System.nanoTime() - start;
    }
    return spent;
  }

  private <T extends AutoCloseable> T own(T thing) {
    owned.push(thing);
    return thing;
  }

  @Override
  public void close() {
    Cleanup.closeAll(owned);
  }
}

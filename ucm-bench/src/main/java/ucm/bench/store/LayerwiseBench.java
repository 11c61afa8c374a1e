package ucm.bench.store;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchPlan;
import ucm.bench.measure.MachineLimits;
import ucm.bench.measure.MachineLimits.Kind;
import ucm.cli.output.Figures;
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
public final class LayerwiseBench {

  private static final long SLOT_BYTES = 4096;

  private final BlockLayout layout;
  private final int blocks;
  private final List<Double> computeMillis;
  private final Duration timeout;
  private final Pipeline store;
  private final Pipeline coldStore;
  private final MachineLimits machine;
  private final EngineMemory memory;
  private final BenchIds ids = new BenchIds(System.nanoTime());

  /** Opens the stores in an empty folder and takes the memory, until the clean-up. */
  public LayerwiseBench(
      Cleanup cleanup,
      StoreCatalog catalog,
      BlockLayout layout,
      int blocks,
      Path folder,
      List<Double> computeMillis,
      int threads) {
    this.layout = layout;
    this.blocks = blocks;
    this.computeMillis = computeMillis;
    UcmConfig config = config(folder);
    timeout = EngineConfig.taskTimeout(config);
    // Of what the limits need to know: whole blocks, all in one step.
    BenchPlan plan =
        new BenchPlan(
            config,
            layout,
            false,
            folder.resolve("files"),
            blocks,
            blocks,
            false,
            1,
            0,
            0,
            1,
            threads);
    Map<String, ?> cold = Map.of("cache_load_backend_only", true, "unique_id", "ucm-bench-cold");
    machine = cleanup.add(new MachineLimits(plan));
    memory = cleanup.add(new EngineMemory(layout, blocks));
    store = cleanup.add(Pipeline.open(config, catalog));
    coldStore = cleanup.add(Pipeline.open(config.with(cold, "engine"), catalog));
  }

  private UcmConfig config(Path folder) {
    long slot = Math.ceilDiv(layout.shardSize(), SLOT_BYTES) * SLOT_BYTES;
    // The round's blocks, and those of the dump before that are still being written.
    double gib = 2.5 * blocks * layout.shardCount() * slot / Figures.GIB;
    String directory = folder.resolve("store").toString();
    return UcmConfig.of(
            "Cache|Posix", Map.of("cache_buffer_capacity_gb", gib, "storage_backends", directory))
        .with(EngineConfig.of(layout), "engine");
  }

  public List<LayerwiseMeasure> run(int warmup, int repeat, Progress progress)
      throws InterruptedException {
    List<LayerwiseMeasure> hot = measures("load, from the pool", "memcpy");
    List<LayerwiseMeasure> cold = measures("load, from files", "open+pread+close, then memcpy");
    List<LayerwiseMeasure> dumps = measures("dump, until the engine may go on", "memcpy");
    List<LayerwiseMeasure> all = Stream.of(hot, cold, dumps).flatMap(List::stream).toList();
    machine.round(0);
    double _ = machine.gigabytesPerSecond(Kind.WRITE);
    for (int round = 0; round < warmup + repeat; round++) {
      if (round == warmup) {
        all.forEach(measure -> measure.steps().clear());
      }
      for (int i = 0; i < computeMillis.size(); i++) {
        progress.at(round * (long) computeMillis.size() + i);
        round(hot.get(i), cold.get(i), dumps.get(i));
      }
    }
    return all;
  }

  private List<LayerwiseMeasure> measures(String name, String limit) {
    return computeMillis.stream().map(millis -> new LayerwiseMeasure(name, limit, millis)).toList();
  }

  private void round(LayerwiseMeasure hot, LayerwiseMeasure cold, LayerwiseMeasure dumps)
      throws InterruptedException {
    BlockIds round = ids.next(blocks);
    Transfer[] layers = new Transfer[layout.shardCount()];
    Arrays.setAll(layers, layer -> memory.transfer(round, 0, round.size(), layer, layer + 1));
    memory.fill(round, 0, blocks);
    double copied = machine.gigabytesPerSecond(Kind.COPY_OUT);
    step(store, dumps, layers, copied, true);
    var _ = EngineConfig.flush(store, timeout);
    memory.poison();
    copied = machine.gigabytesPerSecond(Kind.COPY_IN);
    step(store, hot, layers, copied, false);
    memory.verify(round, 0, blocks);
    memory.poison();
    double read = machine.gigabytesPerSecond(Kind.READ);
    copied = machine.gigabytesPerSecond(Kind.COPY_IN);
    step(coldStore, cold, layers, 1 / (1 / copied + 1 / read), false);
    memory.verify(round, 0, blocks);
  }

  /** A step: loads are handed in before all layers are computed, dumps waited for afterwards. */
  private void step(
      Store of, LayerwiseMeasure measure, Transfer[] layers, double limit, boolean isDump)
      throws InterruptedException {
    Task[] tasks = new Task[layers.length];
    long[] waits = new long[layers.length];
    long[] computes = new long[layers.length];
    long start = System.nanoTime();
    for (int layer = 0; layer < layers.length; layer++) {
      computes[layer] = isDump ? compute(measure.computeMillis()) : 0;
      tasks[layer] = isDump ? of.dump(layers[layer]) : of.load(layers[layer]);
    }
    for (int layer = 0; layer < layers.length; layer++) {
      long asked = System.nanoTime();
      tasks[layer].await(timeout).requireOk();
      waits[layer] = System.nanoTime() - asked;
      computes[layer] += isDump ? 0 : compute(measure.computeMillis());
    }
    double millis = (System.nanoTime() - start) / 1e6;
    measure.add(millis, waits, computes, blocks * layout.shardSize() / limit / 1e6);
  }

  /** Pauses; says for how many nanoseconds, which is a little more than was asked for. */
  private static long compute(double millis) throws InterruptedException {
    long start = System.nanoTime();
    TimeUnit.NANOSECONDS.sleep((long) (millis * 1e6));
    return System.nanoTime() - start;
  }
}

package ucm.bench.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreMetrics;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.bench.measure.BenchCalls;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchLife;
import ucm.bench.measure.BenchLimits;
import ucm.bench.measure.BenchLimits.Kind;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.BenchPlan;
import ucm.bench.measure.BenchResult;
import ucm.bench.measure.BenchStep;
import ucm.bench.measure.BenchThreads;
import ucm.bench.measure.CopyLimit;
import ucm.bench.measure.DiscardedFiles;
import ucm.bench.measure.FileLimit;
import ucm.bench.measure.FioLimit;
import ucm.bench.measure.FioResult;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.TimedFlush;
import ucm.lite.trace.FileFault;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.connector.statistics.MetricsScopes;

/**
 * Measures one pipeline, and the machine's limits beside it.
 *
 * <p>Two instances of the pipeline are open on the same volume: one dumps, the other has never seen
 * the blocks when it loads them, so that its buffers are cold while those of the first are hot. Each
 * round has blocks of its own. Round by round the limit is measured before the store or after it, so
 * that neither always comes first. Every loaded byte is compared, between the timed regions.
 *
 * <p>Run by one thread; {@link #close} may come from another and ends the run.
 */
public final class StoreBench implements AutoCloseable {
  // Of the pipeline: one that dumps, and one that has not seen what it loads.
  private static final int INSTANCES = 2;

  private final BenchPlan plan;
  private final StoreCatalog catalog;
  private final MetricsScopes metrics;
  private final Duration timeout;
  private final BenchLimits limits;
  private final BenchMeasure dumpReady;
  private final BenchMeasure dumpFlushed;
  private final BenchMeasure loadHot;
  private final BenchMeasure loadCold;
  private final List<BenchMeasure> checkedLoads = new ArrayList<>();
  private final LookupBench lookups;
  private final BenchCalls dumps = new BenchCalls("dump", "shard");
  private final BenchCalls hotLoads = new BenchCalls("load, just dumped", "shard");
  private final BenchCalls coldLoads = new BenchCalls("load, by another instance", "shard");

  // Closed in this order: first what uses the others. Guarded by this.
  private final Deque<AutoCloseable> owned = new ArrayDeque<>();
  private boolean closed;

  public StoreBench(BenchPlan plan, StoreCatalog catalog, MetricsScopes metrics) {
    this.metrics = metrics;
    this.plan = plan;
    this.catalog = catalog;
    timeout = EngineConfig.taskTimeout(plan.config());
    List<String> stages = plan.config().pipeline().stages();
    limits = new BenchLimits(stages.size() > 1 && stages.getFirst().equals("Cache"));
    dumpReady = measure("dump, until the engine may go on", limits.frontWriteName());
    dumpFlushed = measure("dump, until flushed", limits.throughWriteName());
    loadHot = measure("load, just dumped", limits.frontReadName());
    loadCold = measure("load, by another instance", limits.throughReadName());
    if (!limits.isBuffered()) {
      checkedLoads.add(measure(loadHot.name(), limits.checkedReadName()));
      checkedLoads.add(measure(loadCold.name(), limits.checkedReadName()));
      checkedLoads.add(measure("plain load that checks", limits.frontReadName()));
    }
    lookups = new LookupBench(plan.lookups(), limits);
  }

  private static BenchMeasure measure(String name, String limit) {
    return new BenchMeasure(name, "GB/s", limit);
  }

  /** Does all rounds, and what is measured once after them. */
  public BenchResult run(Progress progress) throws InterruptedException {
    BenchLife life = makeRounds(progress, true);
    return new BenchResult(
        plan,
        concat(
            List.of(
                List.of(dumpReady, dumpFlushed, loadHot, loadCold),
                checkedLoads,
                lookups.measures())),
        concat(List.of(List.of(dumps, hotLoads, coldLoads), lookups.calls())),
        life,
        fio());
  }

  /** Does all rounds, to warm up; their files stay. */
  public void warmUp(Progress progress) throws InterruptedException {
    BenchLife _ = makeRounds(progress, false);
  }

  /** What does the work of the limits, and the memory that is moved. */
  private record Machine(CopyLimit copy, FileLimit files, EngineMemory memory) {}

  private BenchLife makeRounds(Progress progress, boolean cutsFiles) throws InterruptedException {
    BenchThreads threads = own(new BenchThreads(plan.threads()));
    long start = System.nanoTime();
    Pipeline writer = own(open("writer"));
    double openMillis = BenchLife.millisSince(start);
    Pipeline reader = own(open("reader"));
    if (!writer.keepsBytes()) {
      throw new UsageException(
          "pipeline " + writer.spec() + " keeps metadata only: there is nothing to dump and load");
    }
    Machine machine =
        new Machine(
            own(new CopyLimit(plan, threads)),
            own(new FileLimit(plan.folder().resolve("files"), plan, threads)),
            own(new EngineMemory(plan.layout(), plan.blocks())));
    BenchIds ids = new BenchIds(System.nanoTime());
    for (int round = 0; round < plan.rounds(); round++) {
      progress.at(round);
      round(round, writer, reader, machine, ids);
      if (cutsFiles && !plan.direct()) {
        cutFiles();
      }
    }
    return BenchLife.of(openMillis, writer, INSTANCES, plan.idleSeconds());
  }

  private void round(int round, Pipeline writer, Pipeline reader, Machine machine, BenchIds ids)
      throws InterruptedException {
    boolean counts = round >= plan.warmup();
    boolean limitFirst = round % 2 == 0;
    boolean checkedFirst = round / 2 % 2 == 0;
    // The first read of a file makes it note that it was read, plain reads in half of the rounds,
    // too.
    boolean coldFirst = round / 4 % 2 == 1;
    BlockIds blocks = ids.next(plan.blocks());
    Transfer[] tasks = tasks(machine.memory, blocks);
    machine.files.round(round);
    machine.memory.fill(blocks, 0, plan.blocks());
    if (limitFirst) {
      limitOfDumps(machine);
    }
    long ready = move(writer, tasks, true, counts ? dumps : null);
    long flushed = ready + TimedFlush.nanos(writer, timeout);
    if (!limitFirst) {
      limitOfDumps(machine);
    }
    if (counts) {
      dumpReady.add(gigabytesPerSecond(ready), limits.frontWrite());
      dumpFlushed.add(gigabytesPerSecond(flushed), limits.throughWrite());
    }
    if (limitFirst) {
      limitOfLoads(machine, checkedFirst);
    }
    long cold = coldFirst ? load(reader, tasks, blocks, machine, counts ? coldLoads : null) : 0;
    long hot = load(writer, tasks, blocks, machine, counts ? hotLoads : null);
    cold = coldFirst ? cold : load(reader, tasks, blocks, machine, counts ? coldLoads : null);
    if (!limitFirst) {
      limitOfLoads(machine, checkedFirst);
    }
    if (counts) {
      loadHot.add(gigabytesPerSecond(hot), limits.frontRead());
      loadCold.add(gigabytesPerSecond(cold), limits.throughRead());
      if (!limits.isBuffered()) {
        double checked = limits.get(Kind.CHECKED_READ);
        checkedLoads.getFirst().add(gigabytesPerSecond(hot), checked);
        checkedLoads.get(1).add(gigabytesPerSecond(cold), checked);
        checkedLoads.getLast().add(checked, limits.frontRead());
      }
    }
    limits.set(Kind.EXISTING, machine.files.access(plan.lookups(), true));
    limits.set(Kind.ABSENT, machine.files.access(plan.lookups(), false));
    lookups.round(writer, blocks, ids.next(plan.lookups()), counts);
  }

  /** Only files in the page cache are worth it: others are on the disk already when the round ends. */
  private void cutFiles() {
    try {
      DiscardedFiles.cut(plan.folder(), plan.layout().blockSize());
      for (String folder :
          plan.config().storeConfig().find(CommonKeys.STORAGE_BACKENDS).orElse(List.of())) {
        DiscardedFiles.cut(Path.of(folder), plan.layout().blockSize());
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot cut off the files of a round: " + FileFault.of(e), e);
    }
  }

  private @Nullable FioResult fio() throws InterruptedException {
    Optional<Path> program = FioLimit.find(System.getenv().getOrDefault("PATH", ""));
    return program.isEmpty()
        ? null
        : new FioLimit(program.get(), plan, plan.folder().resolve("fio")).run();
  }

  private double gigabytesPerSecond(long nanos) {
    return (double) plan.roundBytes() / nanos;
  }

  private static <T> List<T> concat(List<List<T>> lists) {
    return lists.stream().flatMap(List::stream).toList();
  }

  private Pipeline open(String role) {
    Map<String, ?> id =
        Map.of(
            CommonKeys.UNIQUE_ID.name(), "ucm-bench-" + ProcessHandle.current().pid() + "-" + role);
    StoreMetrics scope = metrics.scope("bench", role);
    return Pipeline.open(plan.config().with(id, "engine"), catalog, stage -> scope);
  }

  private Transfer[] tasks(EngineMemory memory, BlockIds blocks) {
    return plan.steps().stream()
        .map(
            step ->
                step.shard() == BenchStep.ALL_SHARDS
                    ? memory.transfer(blocks, step.from(), step.to())
                    : memory.layer(blocks, step.from(), step.to(), step.shard()))
        .toArray(Transfer[]::new);
  }

  /** Loads all blocks and compares them; returns how long the loads took, in nanoseconds. */
  private long load(
      Store store, Transfer[] tasks, BlockIds blocks, Machine machine, @Nullable BenchCalls calls)
      throws InterruptedException {
    machine.memory.poison();
    long nanos = move(store, tasks, false, calls);
    machine.memory.verify(blocks, 0, plan.blocks());
    return nanos;
  }

  private void limitOfDumps(Machine machine) throws InterruptedException {
    limits.set(Kind.WRITE, machine.files.write());
    limits.set(Kind.COPY, machine.copy.gigabytesPerSecond());
  }

  private void limitOfLoads(Machine machine, boolean checkedFirst) throws InterruptedException {
    if (checkedFirst && !limits.isBuffered()) {
      limits.set(Kind.CHECKED_READ, machine.files.readChecked());
    }
    limits.set(Kind.READ, machine.files.read());
    if (!checkedFirst && !limits.isBuffered()) {
      limits.set(Kind.CHECKED_READ, machine.files.readChecked());
    }
    limits.set(Kind.COPY, machine.copy.gigabytesPerSecond());
  }

  /** Moves all tasks, some at a time; returns how long that took, in nanoseconds. */
  private long move(Store store, Transfer[] tasks, boolean isDump, @Nullable BenchCalls calls)
      throws InterruptedException {
    Task[] started = new Task[tasks.length];
    long[] nanos = new long[tasks.length];
    long shards = 0;
    long allocated = BenchCalls.allocatedNow();
    long first = System.nanoTime();
    long last = first;
    for (int i = 0; i < tasks.length + plan.inFlight() - 1; i++) {
      if (i < tasks.length) {
        nanos[i] = System.nanoTime();
        started[i] = isDump ? store.dump(tasks[i]) : store.load(tasks[i]);
        shards += tasks[i].shardCount();
      }
      int ended = i - plan.inFlight() + 1;
      if (ended >= 0 && ended < tasks.length) {
        started[ended].await(timeout).requireOk();
        last = System.nanoTime();
        nanos[ended] = last - nanos[ended];
      }
    }
    if (calls != null) {
      calls.add(nanos, shards, BenchCalls.allocatedNow() - allocated);
    }
    return last - first;
  }

  private synchronized <T extends AutoCloseable> T own(T thing) {
    owned.addLast(thing);
    if (closed || Cleanup.interrupted()) {
      close();
      throw new StoreClosedException("the benchmark was stopped");
    }
    return thing;
  }

  @Override
  public synchronized void close() {
    closed = true;
    Cleanup.closeAll(owned);
  }
}

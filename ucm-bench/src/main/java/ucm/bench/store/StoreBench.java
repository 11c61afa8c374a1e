package ucm.bench.store;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.bench.measure.BenchCalls;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchMeasure;
import ucm.bench.measure.BenchPlan;
import ucm.bench.measure.BenchReport;
import ucm.bench.measure.MachineLimits;
import ucm.bench.measure.MachineLimits.Kind;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.Cleanup.FileTreeVisitor;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.lite.trace.FileFault;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.MetricsScopes;

/**
 * Measures one pipeline, and the machine's limits beside it.
 *
 * <p>Two instances of the pipeline are open on the same volume: one dumps, the other has never seen
 * the blocks when it loads them, so that its buffers are cold while those of the first are hot. Each
 * round has blocks of its own. Round by round the limit is measured before the store or after it, so
 * that neither always comes first. Every loaded byte is compared, between the timed regions.
 *
 * <p>Before a Cache, what is done at once is limited by copying, and what goes through it to the volume
 * takes both times one after the other. Any other pipeline is limited by the volume.
 *
 * <p>Where two tiers of storage follow one another, {@link TierBench} measures each.
 *
 * <p>Run by one thread; the clean-up may come from another and ends the run.
 */
public final class StoreBench {

  // Smaller files take little room, and the warm-up makes many of them.
  private static final long LEAST_CUT = 64 << 10;

  private final BenchPlan plan;
  private final StoreCatalog catalog;
  private final MetricsScopes metrics;
  private final Duration timeout;
  private final boolean checks;
  private final Map<Kind, Double> limits = new EnumMap<>(Kind.class);
  private final Speed dumpReady;
  private final Speed dumpFlushed;
  private final Speed loadHot;
  private final Speed loadCold;
  private final Speed checkedHot = new Speed("load, just dumped", Kind.CHECKED_READ);
  private final Speed checkedCold = new Speed("load, by another instance", Kind.CHECKED_READ);
  private final Speed plainChecked = new Speed("plain load that checks", Kind.READ);
  private final LookupBench lookups;
  // One, where two tiers follow one another.
  private List<TierBench> tiers = List.of();
  private final BenchCalls dumps = new BenchCalls("dump", "shard");
  private final BenchCalls hotLoads = new BenchCalls("load, just dumped", "shard");
  private final BenchCalls coldLoads = new BenchCalls("load, by another instance", "shard");

  /** A speed beside what some kinds of plain work come to, one after the other. */
  private final class Speed {

    private final List<Kind> kinds;
    private final BenchMeasure measure;

    Speed(String name, Kind... kinds) {
      this.kinds = List.of(kinds);
      String limit = this.kinds.stream().map(Kind::text).collect(Collectors.joining(", then "));
      measure = new BenchMeasure(name, "GB/s", limit);
    }

    void add(double value) {
      double sum = 0;
      for (Kind kind : kinds) {
        sum += 1 / limits.getOrDefault(kind, 0.0);
      }
      measure.add(value, 1 / sum);
    }
  }

  public StoreBench(BenchPlan plan, StoreCatalog catalog, MetricsScopes metrics) {
    this.metrics = metrics;
    this.plan = plan;
    this.catalog = catalog;
    timeout = EngineConfig.taskTimeout(plan.config());
    List<String> stages = plan.config().pipeline().stages();
    boolean buffered = stages.size() > 1 && stages.getFirst().equals("Cache");
    checks = !buffered;
    Kind[] write = buffered ? new Kind[] {Kind.COPY_OUT, Kind.WRITE} : new Kind[] {Kind.WRITE};
    Kind[] read = buffered ? new Kind[] {Kind.READ, Kind.COPY_IN} : new Kind[] {Kind.READ};
    dumpReady = new Speed("dump, until the engine may go on", write[0]);
    dumpFlushed = new Speed("dump, until flushed", write);
    loadHot = new Speed("load, just dumped", read[read.length - 1]);
    loadCold = new Speed("load, by another instance", read);
    lookups = new LookupBench(plan.lookups());
  }

  /** Does all rounds that begin within a time; what the first ones measured is dropped. */
  public BenchReport.Result run(Cleanup cleanup, Progress progress, Duration most)
      throws InterruptedException {
    // Closed the other way round: first what uses the others.
    EngineMemory memory = cleanup.add(new EngineMemory(plan.layout(), plan.blocks()));
    MachineLimits machine = cleanup.add(new MachineLimits(plan));
    Pipeline reader = cleanup.add(open("reader"));
    Pipeline writer = cleanup.add(open("writer"));
    UsageException.when(
        !writer.keepsBytes(),
        "pipeline " + writer.spec() + " keeps metadata only: there is nothing to dump and load");
    tiers =
        TierBench.open(
            plan.config(),
            parent -> cleanup.folder(parent, "ucm-bench-"),
            (config, role) -> cleanup.add(open(config, role)));
    BenchIds ids = new BenchIds(System.nanoTime());
    BenchReport.Result result = new BenchReport.Result(plan, measures(), calls());
    long begun = System.nanoTime();
    for (int round = 0; round < plan.rounds(); round++) {
      if (most.minusNanos(System.nanoTime() - begun).isNegative()) {
        break;
      }
      if (round == plan.warmup()) {
        result.measures().forEach(measure -> measure.pairs().clear());
        result.calls().forEach(BenchCalls::clear);
      }
      progress.at(round);
      machine.round(round);
      BlockIds blocks = ids.next(plan.blocks());
      round(round, writer, reader, machine, memory, blocks);
      lookups.round(writer, blocks, ids.next(plan.lookups()), machine);
      cutFiles();
    }
    return result;
  }

  private List<BenchMeasure> measures() {
    Stream<Speed> speeds = Stream.of(dumpReady, dumpFlushed, loadHot, loadCold);
    Stream<Speed> checked =
        checks ? Stream.of(checkedHot, checkedCold, plainChecked) : Stream.empty();
    return Stream.of(
            Stream.concat(speeds, checked).map(speed -> speed.measure),
            tiers.stream().flatMap(tier -> tier.measures().stream()),
            lookups.measures().stream())
        .flatMap(measures -> measures)
        .toList();
  }

  private List<BenchCalls> calls() {
    return Stream.concat(Stream.of(dumps, hotLoads, coldLoads), lookups.calls().stream()).toList();
  }

  private void round(
      int round,
      Pipeline writer,
      Pipeline reader,
      MachineLimits machine,
      EngineMemory memory,
      BlockIds blocks)
      throws InterruptedException {
    boolean limitFirst = round % 2 == 0;
    List<Kind> ofDumps = List.of(Kind.WRITE, Kind.COPY_OUT);
    List<Kind> ofLoads = new ArrayList<>(List.of(Kind.READ));
    if (checks) {
      // The first read of a file makes it note that it was read.
      ofLoads.add(round / 2 % 2, Kind.CHECKED_READ);
    }
    ofLoads.add(Kind.COPY_IN);
    Transfer[] tasks = tasks(memory, blocks);
    memory.fill(blocks, 0, plan.blocks());
    if (limitFirst) {
      measure(machine, ofDumps);
    }
    long ready = move(writer, tasks, true, dumps);
    long flushed = ready + EngineConfig.flush(writer, timeout);
    measure(machine, limitFirst ? ofLoads : ofDumps);
    dumpReady.add(gigabytesPerSecond(ready));
    dumpFlushed.add(gigabytesPerSecond(flushed));
    long cold = load(reader, tasks, blocks, memory, coldLoads);
    long hot = load(writer, tasks, blocks, memory, hotLoads);
    if (!limitFirst) {
      measure(machine, ofLoads);
    }
    loadHot.add(gigabytesPerSecond(hot));
    loadCold.add(gigabytesPerSecond(cold));
    if (checks) {
      checkedHot.add(gigabytesPerSecond(hot));
      checkedCold.add(gigabytesPerSecond(cold));
      plainChecked.add(limits.getOrDefault(Kind.CHECKED_READ, 0.0));
    }
    BenchCalls uncounted = new BenchCalls("load, from a tier", "shard");
    for (TierBench tier : tiers) {
      tier.round(
          round, blocks, plan.roundBytes(), store -> load(store, tasks, blocks, memory, uncounted));
    }
  }

  private void measure(MachineLimits machine, List<Kind> kinds) throws InterruptedException {
    for (Kind kind : kinds) {
      limits.put(kind, machine.gigabytesPerSecond(kind));
    }
  }

  /**
   * Cuts off to nothing what is not read again: so the next files are written to memory that was just
   * used, and the disk is not busy with these while something is timed. They keep their names, because ext4
   * is slow to make files for minutes after others were removed. What passes by the page cache is on the
   * disk already.
   */
  private void cutFiles() {
    long least = plan.layout().blockSize();
    if (plan.direct() || least < LEAST_CUT) {
      return;
    }
    FileTreeVisitor cut =
        new FileTreeVisitor() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            if (attributes.isRegularFile() && attributes.size() >= least) {
              try (FileChannel open = FileChannel.open(file, StandardOpenOption.WRITE)) {
                open.truncate(0);
              } catch (NoSuchFileException e) {
                // Removed since it was listed.
              }
            }
            return FileVisitResult.CONTINUE;
          }
        };
    try {
      Files.walkFileTree(plan.folder(), cut);
      Stream<String> named = plan.config().directories().values().stream().flatMap(List::stream);
      Stream<String> others = tiers.stream().flatMap(tier -> tier.directories().stream());
      for (String directory : Stream.concat(named, others).toList()) {
        Files.walkFileTree(Path.of(directory), cut);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot cut off the files of a round: " + FileFault.of(e), e);
    }
  }

  private double gigabytesPerSecond(long nanos) {
    return (double) plan.roundBytes() / nanos;
  }

  private Pipeline open(String role) {
    return open(plan.config(), role);
  }

  private Pipeline open(UcmConfig config, String role) {
    String id = "ucm-bench-" + ProcessHandle.current().pid() + "-" + role;
    StoreMetrics scope = metrics.scope("bench", role);
    return Pipeline.open(
        config.with(Map.of(CommonKeys.UNIQUE_ID.name(), id), "engine"), catalog, _ -> scope);
  }

  private Transfer[] tasks(EngineMemory memory, BlockIds blocks) {
    return plan.steps().stream()
        .map(
            step ->
                memory.transfer(blocks, step.from(), step.to(), step.firstShard(), step.endShard()))
        .toArray(Transfer[]::new);
  }

  /** Loads all blocks and compares them; returns how long the loads took, in nanoseconds. */
  private long load(
      Store store, Transfer[] tasks, BlockIds blocks, EngineMemory memory, BenchCalls calls)
      throws InterruptedException {
    memory.poison();
    long nanos = move(store, tasks, false, calls);
    memory.verify(blocks, 0, plan.blocks());
    return nanos;
  }

  /** Moves all tasks, some at a time; returns how long that took, in nanoseconds. */
  private long move(Store store, Transfer[] tasks, boolean isDump, BenchCalls calls)
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
    calls.add(nanos, shards, BenchCalls.allocatedNow() - allocated);
    return last - first;
  }
}

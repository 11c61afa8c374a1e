package ucm.bench.serve;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.ObjIntConsumer;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;
import ucm.server.client.RemoteScheduler;
import ucm.server.client.RemoteSetup;

/**
 * The calls of an engine of one rank through a daemon that runs, beside the same calls in this process. In
 * each round a new prompt is looked up, saved, looked up again and loaded, on either side; every loaded
 * byte is compared. Blocks go to new folders, which are removed at the end. Used by one thread.
 */
public final class RemoteBench {

  private static final Duration POLL = Duration.ofMillis(5);
  private static final int SAME_ANSWERS = 5;
  private static final double MILLION = 1e6;
  private static final int SAVE = 4;
  private static final int LOAD = 5;

  private final EngineSpec spec;
  private final EngineMemory memory;
  private final BlockHasher hasher;
  private final Duration patience;
  private final Side local;
  private final Side remote;
  private final int blocks;
  private final MemorySegment from;
  private final MemorySegment to;
  private final Random random = new Random(1);
  private int requests;

  // The daemon's figures beside those of this process, in the order in which a round finds them.
  private final List<BenchMeasure> beside =
      List.of(
          beside("look-up that finds nothing", "ms"),
          beside("look-up that finds the prompt", "ms"),
          beside("plan of a save", "ms"),
          beside("plan of a load", "ms"),
          beside("save", "GB/s"),
          beside("load", "GB/s"));
  private final BenchMeasure savesByCopy = new BenchMeasure("save", "GB/s", "memcpy");
  private final BenchMeasure loadsByCopy = new BenchMeasure("load", "GB/s", "memcpy");

  /** The scheduler side of an engine and its one rank: in this process, or through the daemon. */
  private record Side(
      ToIntFunction<PromptRequest> lookup,
      ObjIntConsumer<String> allocated,
      Function<List<ScheduledRequest>, StepPlan> plan,
      Consumer<String> finished,
      WorkerConnector worker) {}

  /** Opens both sides of an engine of one rank; throws when the daemon refuses it. */
  public RemoteBench(
      Cleanup cleanup,
      UcmConfig config,
      StoreCatalog catalog,
      EngineSpec spec,
      Path socket,
      int tokens) {
    this.spec = spec;
    blocks = tokens / spec.blockTokens();
    patience = EngineConfig.taskTimeout(config);
    hasher = config.blockHashing(catalog).hasher(spec.model(), spec.tpSize(), spec.dtype());
    memory = cleanup.add(new EngineMemory(spec.kv().blockLayout(), 0, blocks + 1));
    Arena arena = cleanup.add(Arena.ofShared());
    long bytes = blocks * memory.blockSize();
    from = arena.allocate(bytes, Long.BYTES).fill((byte) 1);
    to = arena.allocate(bytes, Long.BYTES).fill((byte) 2);
    ConnectorSetup here = ConnectorSetup.of(inNewFolders(cleanup, config), catalog, spec);
    Pipeline pipeline = cleanup.add(here.openPipeline(0));
    WorkerConnector worker = cleanup.add(here.worker(0, memory.caches(), pipeline));
    SchedulerConnector scheduler = cleanup.add(here.scheduler(pipeline));
    int[] table = IntStream.rangeClosed(0, blocks).toArray();
    local =
        new Side(
            request -> scheduler.matchedTokens(request, 0),
            (id, external) -> scheduler.allocated(id, table, external),
            scheduler::plan,
            scheduler::finished,
            worker);
    String yaml = yaml(inNewFolders(cleanup, config));
    RemoteSetup there = RemoteSetup.of(socket, config.source(), yaml, spec);
    Store slots = cleanup.add(there.slots(0));
    WorkerConnector remoteWorker = cleanup.add(there.worker(0, memory.caches(), slots));
    RemoteScheduler remoteScheduler = cleanup.add(there.scheduler());
    remote =
        new Side(
            request -> remoteScheduler.matchedTokens(request, 0),
            (id, external) -> remoteScheduler.allocated(id, table, external),
            remoteScheduler::plan,
            remoteScheduler::finished,
            remoteWorker);
  }

  private static UcmConfig inNewFolders(Cleanup cleanup, UcmConfig config) {
    return config.withDirectories(
        parent -> cleanup.folder(Path.of(parent), "ucm-bench-serve-").toString(), "bench serve");
  }

  /** JSON is YAML. */
  private static String yaml(UcmConfig config) {
    Map<String, @Nullable Object> values = new LinkedHashMap<>();
    config.connector().forEach((name, setting) -> values.put(name, setting.raw()));
    Map<String, @Nullable Object> all = new LinkedHashMap<>();
    config.topLevel().forEach((name, setting) -> all.put(name, setting.raw()));
    all.put(
        "ucm_connectors",
        List.of(
            Map.of("ucm_connector_name", config.connectorName(), "ucm_connector_config", values)));
    return JsonMapper.shared().writeValueAsString(all);
  }

  private static BenchMeasure beside(String name, String unit) {
    return new BenchMeasure(name, unit, "in this process");
  }

  public List<BenchMeasure> run(int warmup, int repeat) throws InterruptedException {
    List<BenchMeasure> all = new ArrayList<>(beside);
    all.addAll(List.of(savesByCopy, loadsByCopy));
    for (int round = 0; round < warmup + repeat; round++) {
      if (round == warmup) {
        all.forEach(measure -> measure.pairs().clear());
      }
      double[] here = round(local);
      double copy = copySpeed();
      double[] there = round(remote);
      for (int i = 0; i < there.length; i++) {
        beside.get(i).add(there[i], here[i]);
      }
      savesByCopy.add(there[SAVE], copy);
      loadsByCopy.add(there[LOAD], copy);
    }
    return all;
  }

  private double copySpeed() {
    long start = System.nanoTime();
    for (long at = 0; at < from.byteSize(); at += memory.blockSize()) {
      MemorySegment.copy(from, at, to, at, memory.blockSize());
    }
    return from.byteSize() / (millisSince(start) * MILLION);
  }

  private static double millisSince(long start) {
    return (System.nanoTime() - start) / MILLION;
  }

  /** What a side takes for a round: the figures of {@link #beside}. */
  private double[] round(Side side) throws InterruptedException {
    int[] prompt = random.ints((long) blocks * spec.blockTokens() + 1, 0, 1 << 16).toArray();
    BlockIds ids = hasher.hash(prompt, spec.blockTokens());
    memory.fill(ids, 0, blocks);
    String id = nextId();
    long start = System.nanoTime();
    int found = side.lookup.applyAsInt(PromptRequest.of(id, prompt, 1));
    double miss = millisSince(start);
    require(found == 0, "a new prompt is found");
    side.allocated.accept(id, 0);
    start = System.nanoTime();
    StepPlan save = side.plan.apply(List.of(ScheduledRequest.of(id, 0, prompt.length)));
    double savePlan = millisSince(start);
    double saveMillis = step(side, save);
    end(side, id);
    require(save.saveBlocks() > 0, "nothing is saved");
    awaitStored(side, prompt);
    id = nextId();
    start = System.nanoTime();
    found = side.lookup.applyAsInt(PromptRequest.of(id, prompt, 1));
    double hit = millisSince(start);
    side.allocated.accept(id, found);
    start = System.nanoTime();
    StepPlan load = side.plan.apply(List.of(ScheduledRequest.of(id, found, 1)));
    double loadPlan = millisSince(start);
    int loaded = found / spec.blockTokens();
    memory.poison();
    double loadMillis = step(side, load);
    require(loaded > 0 && side.worker.takeLoadErrors().length == 0, "nothing is loaded");
    memory.verify(ids, 0, loaded);
    end(side, id);
    return new double[] {
      miss,
      hit,
      savePlan,
      loadPlan,
      save.saveBlocks() * memory.blockSize() / saveMillis / MILLION,
      loaded * memory.blockSize() / loadMillis / MILLION
    };
  }

  private static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new StoreException(
          otherwise + ": the daemon may have been busy or gone; see its log and the pipeline's");
    }
  }

  private String nextId() {
    return "request-" + requests++;
  }

  private double step(Side side, StepPlan plan) throws InterruptedException {
    WorkerConnector worker = side.worker;
    long start = System.nanoTime();
    worker.startLoad(plan);
    for (int layer = 0; layer < spec.kv().layers(); layer++) {
      worker.waitForLayerLoad(layer);
      worker.saveLayer(layer);
    }
    worker.waitForSave();
    return millisSince(start);
  }

  private static void end(Side side, String id) {
    side.finished.accept(id);
    // Tells the daemon.
    StepPlan _ = side.plan.apply(List.of());
  }

  /** What was saved becomes visible block by block: until look-ups find no more of it. */
  private void awaitStored(Side side, int[] prompt) throws InterruptedException {
    long deadline = System.nanoTime() + patience.toNanos();
    int last = 0;
    int same = 0;
    while (last == 0 || same < SAME_ANSWERS) {
      require(System.nanoTime() < deadline, "what was saved is not found");
      String id = nextId();
      int found = side.lookup.applyAsInt(PromptRequest.of(id, prompt, 1));
      side.allocated.accept(id, 0);
      end(side, id);
      same = found == last ? same + 1 : 0;
      last = found;
      if (found / spec.blockTokens() == blocks) {
        return;
      }
      Thread.sleep(POLL);
    }
  }
}

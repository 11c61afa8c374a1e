package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.pipeline.connector.TestEngines.BLOCK_TOKENS;
import static ucm.pipeline.connector.TestEngines.blocks;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreMetrics;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

/**
 * Both sides against an engine that does everything at random. The engine itself checks every plan
 * and every byte; here stand the models of what the store holds and of what is a hit.
 */
class ConnectorPropertyTest {

  private static final int STEPS = 150;

  private static Stream<Arguments> modes() {
    List<Arguments> modes = new ArrayList<>();
    List<EngineSpec> engines = List.of(TestEngines.gqa(1), TestEngines.gqa(2), TestEngines.mla(2));
    List<Map<String, Object>> settings =
        List.of(
            TestEngines.top(),
            TestEngines.top("hit_ratio", 0.5),
            TestEngines.top("persist_token_threshold", 12),
            TestEngines.top("load_tokens_threshold", 4),
            TestEngines.top(
                "hit_ratio", 0.8, "persist_token_threshold", 8, "load_tokens_threshold", 5));
    long seed = 1;
    for (EngineSpec engine : engines) {
      for (boolean layerwise : new boolean[] {false, true}) {
        for (Map<String, Object> top : settings) {
          Map<String, Object> all = new LinkedHashMap<>(top);
          all.put("use_layerwise", layerwise);
          modes.add(Arguments.of(engine, all, seed++));
        }
      }
    }
    return modes.stream();
  }

  /** What is stored, in plain words: the tokens of a prompt up to a block's end, for each part. */
  private static final class NaiveStore implements SimulatedEngine.Reference {

    private final EngineSpec spec;
    private final Map<String, Object> top;
    private final BlockHasher hasher;
    private final Map<String, Set<Integer>> parts = new HashMap<>();
    private final Map<String, BlockIds> saved = new LinkedHashMap<>();
    private boolean expectsHits = true;
    private int hits;

    NaiveStore(EngineSpec spec, Map<String, Object> top) {
      this.spec = spec;
      this.top = top;
      this.hasher = BlockHasher.of(spec.model(), spec.tpSize(), spec.dtype());
    }

    @Override
    public void saved(BlockIds ids) {
      for (int i = 0; i < ids.size(); i++) {
        saved.put(ids.hex(i), ids.slice(i, i + 1));
        Set<Integer> held = parts.computeIfAbsent(ids.hex(i), _ -> new HashSet<>());
        for (int part = 0; part < spec.parts(); part++) {
          held.add(part);
        }
      }
    }

    @Override
    public void looked(int[] tokens, int hbmBlocks, int promptTokens, int offered) {
      if (!expectsHits) {
        return;
      }
      BlockIds ids = hasher.hash(tokens, BLOCK_TOKENS);
      int found = 0;
      while (hbmBlocks + found < ids.size()
          && parts.getOrDefault(ids.hex(hbmBlocks + found), Set.of()).size() == spec.parts()) {
        found++;
      }
      double ratio = ((Number) top.getOrDefault("hit_ratio", 1)).doubleValue();
      while (found > 0
          && top.containsKey("hit_ratio")
          && (hbmBlocks + found) * BLOCK_TOKENS > ratio * promptTokens + 1e-9) {
        found--;
      }
      int expected = found * BLOCK_TOKENS;
      if (expected <= (int) top.getOrDefault("load_tokens_threshold", 0)
          || tokens.length < (int) top.getOrDefault("persist_token_threshold", 0)) {
        expected = 0;
      } else if (expected + hbmBlocks * BLOCK_TOKENS == tokens.length) {
        expected--;
      }
      assertThat(offered)
          .as("%d tokens, %d blocks on the device, %d found", tokens.length, hbmBlocks, found)
          .isEqualTo(expected);
      hits += offered;
    }

    /** Removes the part of a rank from the storage, as another process would. */
    void lose(Random random, MemoryStore.Volume volume) {
      List<String> all = parts.keySet().stream().sorted().toList();
      if (all.isEmpty()) {
        return;
      }
      String hex = all.get(random.nextInt(all.size()));
      int part = random.nextInt(spec.parts());
      if (parts.getOrDefault(hex, Set.of()).remove(part)) {
        volume.remove(hasher.ofRank(part, BlockIds.ofHex(hex)), 0);
      }
    }
  }

  /** An engine whose ranks have a store each, and its scheduler one more. */
  private static SimulatedEngine engine(
      EngineSpec spec,
      Map<String, Object> top,
      Random random,
      SimulatedEngine.Reference reference,
      IntFunction<Store> stores) {
    ConnectorSetup setup = TestEngines.setup(spec, top, StoreMetrics.NONE);
    List<RankMemory> memories = new ArrayList<>();
    List<WorkerConnector> workers = new ArrayList<>();
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      memories.add(new RankMemory(spec.kv(), SimulatedPages.COUNT));
      Store store = TestEngines.open(stores.apply(rank), spec);
      workers.add(setup.worker(rank, memories.get(rank).caches(), store));
    }
    SchedulerConnector scheduler =
        setup.scheduler(TestEngines.open(stores.apply(spec.tpSize()), spec));
    SimulatedEngine engine =
        new SimulatedEngine(spec, random, scheduler, workers, memories, reference);
    engine.tooShort = tokens -> tokens < (int) top.getOrDefault("persist_token_threshold", 0);
    return engine;
  }

  @ParameterizedTest
  @MethodSource("modes")
  void loadsAndSavesExactlyTheRightBlocks(EngineSpec spec, Map<String, Object> top, long seed)
      throws InterruptedException {
    Random random = new Random(seed);
    MemoryStore.Volume volume = new MemoryStore.Volume();
    NaiveStore naive = new NaiveStore(spec, top);
    SimulatedEngine engine = engine(spec, top, random, naive, _ -> new MemoryStore(volume));
    for (int step = 0; step < STEPS; step++) {
      engine.step();
      naive.lose(random, volume);
    }
    engine.end();
    assertThat(engine.loadErrors).isZero();
    assertThat(naive.hits).isPositive();
    assertThat(engine.loadedBlocks).isPositive();
    assertThat(engine.preemptions).isPositive();
    assertThat(volume.size())
        .as("parts stored")
        .isEqualTo(naive.parts.values().stream().mapToInt(Set::size).sum());
    checkStored(spec, volume, naive);
  }

  @ParameterizedTest
  @MethodSource("modes")
  void failuresOfTheStoreCostOnlyTime(EngineSpec spec, Map<String, Object> top, long seed)
      throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    NaiveStore naive = new NaiveStore(spec, top);
    naive.expectsHits = false;
    SimulatedEngine engine =
        engine(
            spec,
            top,
            new Random(seed),
            naive,
            rank ->
                new FaultyStore(new MemoryStore(volume), seed + rank)
                    .rate(Call.LOAD, Fault.FAIL, 0.02)
                    .rate(Call.LOAD, Fault.MISS, 0.02)
                    .rate(Call.LOAD, Fault.CORRUPT, 0.02)
                    .rate(Call.LOAD, Fault.REORDER, 0.3)
                    .rate(Call.LOAD, Fault.QUEUE_FULL, 0.05)
                    .rate(Call.LOAD, Fault.THROW, 0.05)
                    .rate(Call.DUMP, Fault.FAIL, 0.02)
                    .rate(Call.DUMP, Fault.QUEUE_FULL, 0.05)
                    .rate(Call.DUMP, Fault.THROW, 0.05)
                    .rate(Call.LOOKUP, Fault.MISS, 0.05));
    for (int step = 0; step < STEPS; step++) {
      engine.step();
    }
    engine.end();
    assertThat(engine.loadErrors).isPositive();
    checkStored(spec, volume, naive);
  }

  /** Whatever is stored under an id is what belongs there, byte by byte. */
  private static void checkStored(EngineSpec spec, MemoryStore.Volume volume, NaiveStore naive)
      throws InterruptedException {
    RankMemory memory = new RankMemory(spec.kv(), 1);
    int found = 0;
    for (int part = 0; part < spec.parts(); part++) {
      try (MemoryStore store = TestEngines.open(new MemoryStore(volume), spec);
          WorkerConnector worker =
              TestEngines.setup(spec, "use_layerwise", false)
                  .worker(part, memory.caches(), store)) {
        for (BlockIds id : naive.saved.values()) {
          BlockIds own = naive.hasher.ofRank(part, id);
          if (store.lookup(own).isEmpty()) {
            continue;
          }
          memory.poison(0);
          RequestPlan load =
              new RequestPlan("check", id, blocks(0), BlockIds.empty(), blocks(), blocks());
          TestEngines.step(worker, new StepPlan(List.of(load)), TestEngines.LayerComputation.NONE);
          assertThat(memory.holds(0, own, 0)).as("block %s of rank %d", own.hex(0), part).isTrue();
          found++;
        }
      }
    }
    assertThat(found).isEqualTo(volume.size()).isPositive();
  }
}

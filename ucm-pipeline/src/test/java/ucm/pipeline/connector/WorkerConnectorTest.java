package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static ucm.pipeline.connector.TestEngines.LAYERS;
import static ucm.pipeline.connector.TestEngines.blocks;
import static ucm.pipeline.connector.TestEngines.gqa;
import static ucm.pipeline.connector.TestEngines.setup;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.testkit.BlockBytes;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

class WorkerConnectorTest {

  private static final BlockIds IDS = BlockBytes.ids(7, 4);
  private static final BlockIds NONE = BlockIds.empty();

  private final MemoryStore.Volume volume = new MemoryStore.Volume();
  private final RankMemory memory = new RankMemory(TestEngines.gqaLayout(), 8);

  private static StepPlan save(BlockIds ids, int[] blocks, int... context) {
    return new StepPlan(List.of(new RequestPlan("s", NONE, blocks(), ids, blocks, context)));
  }

  private static StepPlan load(BlockIds ids, int... blocks) {
    return new StepPlan(List.of(new RequestPlan("l", ids, blocks, NONE, blocks(), blocks())));
  }

  private MemoryStore store() {
    return TestEngines.open(new MemoryStore(volume), gqa(1));
  }

  private WorkerConnector worker(Store store, boolean layerwise) {
    return setup(gqa(1), "use_layerwise", layerwise).worker(0, memory.caches(), store);
  }

  /** Stores all four blocks from pages 0 to 3. */
  private void fill() throws InterruptedException {
    try (MemoryStore store = store();
        WorkerConnector worker = worker(store, true)) {
      TestEngines.step(
          worker,
          save(IDS, blocks(0, 1, 2, 3)),
          layer -> {
            for (int block = 0; block < 4; block++) {
              memory.compute(layer, block, IDS, block);
            }
          });
    }
    for (int block = 0; block < 8; block++) {
      memory.poison(block);
    }
  }

  @Test
  void loadsOneLayerAhead() throws InterruptedException {
    fill();
    Deque<Runnable> held = new ArrayDeque<>();
    FaultyStore store =
        new FaultyStore(new MemoryStore(volume), 1)
            .rate(Call.LOAD, Fault.DELAY, 1)
            .delayedBy(held::add);
    try (WorkerConnector worker = worker(TestEngines.open(store, gqa(1)), true)) {
      worker.startLoad(load(IDS, 4, 5, 6, 7));
      assertThat(held).as("the first layer is on its way").hasSize(1);
      held.remove().run();
      for (int layer = 0; layer < LAYERS - 1; layer++) {
        // The layer is there, so that the wait is none; the next one begins with it.
        worker.waitForLayerLoad(layer);
        assertThat(memory.holds(layer, 4, IDS, 0)).isTrue();
        assertThat(memory.holds(layer + 1, 4, IDS, 0)).isFalse();
        assertThat(held).hasSize(1);
        held.remove().run();
        worker.saveLayer(layer);
      }
      worker.waitForLayerLoad(LAYERS - 1);
      worker.saveLayer(LAYERS - 1);
      worker.waitForSave();
      assertThat(held).isEmpty();
      for (int block = 0; block < 4; block++) {
        assertThat(memory.holds(4 + block, IDS, block)).isTrue();
      }
      assertThat(store.calls(Call.LOAD)).isEqualTo(LAYERS);
    }
  }

  @Test
  void whatOneModeStoresTheOtherLoads() throws InterruptedException {
    fill();
    try (MemoryStore store = store();
        WorkerConnector worker = worker(store, false)) {
      worker.startLoad(load(IDS, 7, 5, 6, 4));
      for (int block = 0; block < 4; block++) {
        assertThat(memory.holds(blocks(7, 5, 6, 4)[block], IDS, block))
            .as("direct mode has loaded everything when the step begins")
            .isTrue();
      }
      worker.abandonStep();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void namesExactlyTheBlocksThatCouldNotBeLoaded(boolean layerwise) throws InterruptedException {
    fill();
    volume.remove(IDS, 2);
    try (MemoryStore store = store();
        WorkerConnector worker = worker(store, layerwise)) {
      TestEngines.step(worker, load(IDS, 4, 5, 6, 7), TestEngines.LayerComputation.NONE);
      assertThat(worker.takeLoadErrors()).containsExactly(6);
      assertThat(worker.takeLoadErrors()).as("named once").isEmpty();
      TestEngines.step(worker, load(IDS, 4, 5, 6, 7), TestEngines.LayerComputation.NONE);
      TestEngines.step(worker, StepPlan.EMPTY, TestEngines.LayerComputation.NONE);
      assertThat(worker.takeLoadErrors()).as("kept until they are taken").containsExactly(6);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void storesNothingThatWasComputedFromAFailedLoad(boolean layerwise) throws InterruptedException {
    fill();
    volume.remove(IDS, 1);
    int before = volume.size();
    BlockIds fresh = BlockBytes.ids(8, 3);
    RequestPlan failing =
        new RequestPlan(
            "a", IDS.slice(0, 2), blocks(0, 1), fresh.slice(0, 1), blocks(2), blocks(0, 1));
    // It has pages of its own for the beginning, and goes on with what the first one computes.
    RequestPlan sharing =
        new RequestPlan("b", NONE, blocks(), fresh.slice(1, 2), blocks(3), blocks(5, 6, 2));
    RequestPlan unconcerned =
        new RequestPlan("c", NONE, blocks(), fresh.slice(2, 3), blocks(4), blocks(0));
    try (MemoryStore store = store();
        WorkerConnector worker = worker(store, layerwise)) {
      TestEngines.step(
          worker,
          new StepPlan(List.of(failing, sharing, unconcerned)),
          TestEngines.LayerComputation.NONE);
      assertThat(worker.takeLoadErrors()).containsExactly(1);
      assertThat(store.lookup(fresh).stream().toArray()).containsExactly(2);
      assertThat(volume.size()).isEqualTo(before + 1);
    }
  }

  @Test
  void aRankStoresNothingThatOthersSpoilt() throws InterruptedException {
    fill();
    EngineSpec spec = gqa(2);
    try (MemoryStore store = TestEngines.open(new MemoryStore(volume), spec);
        WorkerConnector worker =
            setup(spec, "use_layerwise", true).worker(0, memory.caches(), store)) {
      BlockIds fresh = BlockBytes.ids(8, 2);
      RequestPlan loading =
          new RequestPlan("a", IDS.slice(0, 1), blocks(0), fresh.slice(0, 1), blocks(1), blocks(0));
      RequestPlan other =
          new RequestPlan("b", NONE, blocks(), fresh.slice(1, 2), blocks(2), blocks());
      worker.startLoad(new StepPlan(List.of(loading, other)));
      for (int layer = 0; layer < LAYERS; layer++) {
        worker.waitForLayerLoad(layer);
        worker.saveLayer(layer);
      }
      worker.excludeFromSave(blocks(0));
      worker.waitForSave();
      assertThat(worker.takeLoadErrors()).isEmpty();
      assertThat(store.lookup(fresh).stream().toArray()).containsExactly(1);
    }
  }

  @Test
  void aBlockThatTwoRequestsComputedIsDumpedOnce() throws InterruptedException {
    FaultyStore store = TestEngines.open(new FaultyStore(new MemoryStore(volume), 1), gqa(1));
    RequestPlan one = new RequestPlan("a", NONE, blocks(), IDS, blocks(0, 1, 2, 3), blocks());
    RequestPlan two = new RequestPlan("b", NONE, blocks(), IDS, blocks(4, 5, 6, 7), blocks());
    try (WorkerConnector worker = worker(store, false)) {
      for (int layer = 0; layer < LAYERS; layer++) {
        for (int block = 0; block < 4; block++) {
          memory.compute(layer, block, IDS, block);
        }
      }
      TestEngines.step(worker, new StepPlan(List.of(one, two)), TestEngines.LayerComputation.NONE);
      assertThat(volume.size()).isEqualTo(4);
      TestEngines.step(worker, load(IDS, 4, 5, 6, 7), TestEngines.LayerComputation.NONE);
      for (int block = 0; block < 4; block++) {
        assertThat(memory.holds(4 + block, IDS, block)).isTrue();
      }
    }
  }

  @Test
  void withMlaOneRankDumpsAndAllLoad() throws InterruptedException {
    EngineSpec spec = TestEngines.mla(2);
    List<RankMemory> memories = List.of(new RankMemory(spec.kv(), 8), new RankMemory(spec.kv(), 8));
    for (int rank = 0; rank < 2; rank++) {
      RankMemory own = memories.get(rank);
      FaultyStore counted = new FaultyStore(new MemoryStore(volume), 1);
      try (WorkerConnector worker =
          setup(spec, "use_layerwise", true)
              .worker(rank, own.caches(), TestEngines.open(counted, spec))) {
        TestEngines.step(
            worker, save(IDS, blocks(0, 1, 2, 3)), layer -> own.compute(layer, 0, IDS, 0));
        assertThat(counted.calls(Call.DUMP)).isEqualTo(rank == 0 ? LAYERS : 0);
        TestEngines.step(worker, load(IDS, 4, 5, 6, 7), TestEngines.LayerComputation.NONE);
        assertThat(worker.takeLoadErrors()).isEmpty();
        assertThat(own.holds(4, IDS, 0)).as("the bytes of rank 0, on rank %d", rank).isTrue();
      }
    }
  }

  @Test
  void anAbandonedStepStoresNothing() throws InterruptedException {
    try (MemoryStore store = store();
        WorkerConnector worker = worker(store, true)) {
      worker.startLoad(save(IDS, blocks(0, 1, 2, 3)));
      worker.waitForLayerLoad(0);
      worker.saveLayer(0);
      worker.abandonStep();
      assertThat(store.lookup(IDS).isEmpty()).isTrue();
      fill();
      worker.startLoad(load(IDS, 4, 5, 6, 7));
      worker.waitForLayerLoad(0);
      worker.abandonStep();
      assertThat(worker.takeLoadErrors()).as("not all layers are there").hasSize(4);
      TestEngines.step(worker, StepPlan.EMPTY, TestEngines.LayerComputation.NONE);
    }
  }

  @Test
  void closingInAStepWaitsForTheMemory() throws InterruptedException {
    fill();
    FaultyStore store =
        TestEngines.open(
            new FaultyStore(new MemoryStore(volume), 1).rate(Call.LOAD, Fault.DELAY, 1), gqa(1));
    WorkerConnector worker = worker(store, true);
    worker.startLoad(load(IDS, 4, 5, 6, 7));
    store.close();
    worker.close();
    worker.close();
    assertThat(worker.takeLoadErrors()).containsExactly(4, 5, 6, 7);
  }

  @Test
  void saysWhatIsWrongWithTheOrderOfCalls() throws InterruptedException {
    MemoryStore store = store();
    WorkerConnector worker = worker(store, true);
    assertThatIllegalStateException()
        .isThrownBy(() -> worker.waitForLayerLoad(0))
        .withMessageContaining("is in no step: call startLoad() first");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> worker.startLoad(load(IDS.slice(0, 1), 8)))
        .withMessageContaining("block 8 is planned")
        .withMessageContaining("has blocks 0 to 7");
    worker.startLoad(
        new StepPlan(
            List.of(
                new RequestPlan(
                    "x", IDS.slice(0, 1), blocks(1), IDS.slice(1, 2), blocks(2), blocks()))));
    assertThatIllegalStateException()
        .isThrownBy(() -> worker.startLoad(StepPlan.EMPTY))
        .withMessageContaining("is in a step already");
    assertThatIllegalStateException()
        .isThrownBy(() -> worker.saveLayer(0))
        .withMessageContaining("before waitForLayerLoad(0)");
    worker.waitForLayerLoad(0);
    worker.saveLayer(0);
    assertThatIllegalStateException()
        .isThrownBy(worker::waitForSave)
        .withMessageContaining("after 1 of 3 layers");
    worker.close();
    assertThatIllegalStateException()
        .isThrownBy(() -> worker.startLoad(StepPlan.EMPTY))
        .withMessageContaining("is closed");
    store.close();
  }
}

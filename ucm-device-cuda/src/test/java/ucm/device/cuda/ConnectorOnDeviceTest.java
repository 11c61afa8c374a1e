package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.device.Device;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvCaches;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.KvTensor;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.store.cache.CacheStore;
import ucm.testkit.BlockBytes;

/** The connector of an engine whose KV cache is on a GPU: saves wait for the events it hands in. */
@Timeout(60)
final class ConnectorOnDeviceTest {

  private static final int LAYERS = 3;
  private static final int BLOCK_BYTES = 2048;
  private static final BlockIds IDS = BlockBytes.ids(3, 4);
  private static final int[] SAVED = {0, 1, 2, 3};
  private static final int[] LOADED = {7, 6, 5, 4};

  private final SimulatedCuda cuda = SimulatedCuda.load();
  private final Map<String, Long> before = cuda.kept();
  private final Device device = new CudaDriver().open(0);
  private final List<MemoryRegion> layers = new ArrayList<>();

  @BeforeEach
  void allocateTheKvCache() {
    for (int layer = 0; layer < LAYERS; layer++) {
      layers.add(device.allocate(8 * BLOCK_BYTES));
      cuda.bytes(layers.get(layer)).fill((byte) 0xA5);
    }
  }

  @AfterEach
  void leavesNothing() {
    layers.forEach(device::free);
    device.close();
    assertThat(cuda.kept()).isEqualTo(before);
    cuda.requireNoMisuse();
  }

  private WorkerConnector worker(boolean layerwise, boolean eventSync, KvCaches caches) {
    EngineSpec spec =
        new EngineSpec(
            "engine",
            "model",
            "torch.bfloat16",
            1,
            false,
            4,
            KvLayout.uniform(LAYERS, BLOCK_BYTES));
    UcmConfig config =
        UcmConfig.of(
                "Cache",
                Map.of("cache_device", "cuda", "cache_buffer_capacity_gb", 1.0 / (1 << 10)))
            .withTopLevel(
                Map.of("use_layerwise", layerwise, "enable_event_sync", eventSync), "test");
    return ConnectorSetup.of(config, StoreCatalog.of(Map.of("Cache", CacheStore::new)), spec)
        .worker(0, 0, caches);
  }

  private KvCaches onDevice() {
    return new KvCaches(
        layers.stream().map(layer -> List.of(KvTensor.dense(layer, BLOCK_BYTES))).toList());
  }

  private static StepPlan plan(BlockIds loads, int[] loadTo, BlockIds saves, int[] saveFrom) {
    return new StepPlan(List.of(new RequestPlan("r", loads, loadTo, saves, saveFrom, new int[0])));
  }

  /** What the device computes, when it gets there. */
  private void compute(int layer) {
    for (int block : SAVED) {
      BlockBytes.fill(
          cuda.bytes(layers.get(layer)).asSlice((long) block * BLOCK_BYTES, BLOCK_BYTES),
          IDS.high(block),
          IDS.low(block),
          layer,
          0);
    }
  }

  private void requireLoaded() {
    for (int layer = 0; layer < LAYERS; layer++) {
      for (int i = 0; i < LOADED.length; i++) {
        long wrong =
            BlockBytes.firstWrong(
                cuda.bytes(layers.get(layer)).asSlice((long) LOADED[i] * BLOCK_BYTES, BLOCK_BYTES),
                IDS.high(i),
                IDS.low(i),
                layer,
                0);
        assertThat(wrong).as("layer %d of block %d", layer, i).isNegative();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void savesWhatTheDeviceComputesBehindTheEventsOfTheEngine(boolean layerwise)
      throws InterruptedException {
    try (WorkerConnector worker = worker(layerwise, true, onDevice())) {
      assertThat(worker.takesEvents()).isTrue();
      worker.startLoad(plan(BlockIds.empty(), new int[0], IDS, SAVED));
      long[] events = new long[LAYERS];
      for (int layer = 0; layer < LAYERS; layer++) {
        worker.waitForLayerLoad(layer);
        events[layer] = cuda.event();
        // The engine goes on: nothing is computed yet.
        worker.saveLayer(layer, events[layer]);
      }
      Thread gpu =
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int layer = 0; layer < LAYERS; layer++) {
                      compute(layer);
                      cuda.comes(events[layer]);
                    }
                  });
      worker.waitForSave();
      gpu.join();
      assertThat(cuda.count("cuStreamWaitEvent")).isPositive();
      worker.startLoad(plan(IDS, LOADED, BlockIds.empty(), new int[0]));
      for (int layer = 0; layer < LAYERS; layer++) {
        worker.waitForLayerLoad(layer);
        worker.saveLayer(layer);
      }
      worker.waitForSave();
      assertThat(worker.takeLoadErrors()).isEmpty();
      requireLoaded();
    }
  }

  @Test
  void takesNoEventsWhereTheyAreSwitchedOff() throws InterruptedException {
    try (WorkerConnector worker = worker(true, false, onDevice())) {
      requireNoEvents(worker, "enable_event_sync is false");
    }
  }

  @Test
  void takesNoEventsForHostMemory() throws InterruptedException {
    try (Arena arena = Arena.ofShared()) {
      MemoryRegion host = MemoryRegion.host(arena.allocate(8 * BLOCK_BYTES, 4096));
      KvCaches caches =
          new KvCaches(
              layers.stream().map(_ -> List.of(KvTensor.dense(host, BLOCK_BYTES))).toList());
      try (WorkerConnector worker = worker(true, true, caches)) {
        requireNoEvents(worker, "its KV cache is host memory");
      }
    }
  }

  private static void requireNoEvents(WorkerConnector worker, String why)
      throws InterruptedException {
    assertThat(worker.takesEvents()).isFalse();
    worker.startLoad(StepPlan.EMPTY);
    assertThatThrownBy(() -> worker.saveLayer(0, 5))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining(why)
        .hasMessageContaining("then saveLayer(0)");
    worker.abandonStep();
  }
}

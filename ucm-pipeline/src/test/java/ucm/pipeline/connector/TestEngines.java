package ucm.pipeline.connector;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.IntStream;
import ucm.api.Store;
import ucm.api.StoreConfig;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.pipeline.StoreCatalog;
import ucm.pipeline.UcmConfig;

/** Engines, configurations and stores for tests of the connector. */
final class TestEngines {

  static final int BLOCK_TOKENS = 4;
  static final int LAYERS = 3;

  private TestEngines() {}

  static EngineSpec gqa(int tpSize) {
    return new EngineSpec(
        "test", "model", "torch.bfloat16", tpSize, false, BLOCK_TOKENS, gqaLayout());
  }

  static KvLayout gqaLayout() {
    return KvLayout.uniform(LAYERS, 96, 96);
  }

  static EngineSpec mla(int tpSize) {
    return new EngineSpec(
        "test",
        "model",
        "torch.bfloat16",
        tpSize,
        true,
        BLOCK_TOKENS,
        KvLayout.uniform(LAYERS, 120));
  }

  /** Top-level values, by name. */
  static Map<String, Object> top(Object... namesAndValues) {
    Map<String, Object> values = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      values.put((String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return values;
  }

  static ConnectorSetup setup(EngineSpec spec, Map<String, Object> top, StoreMetrics metrics) {
    UcmConfig config = UcmConfig.of("Fake", Map.of()).withTopLevel(top, "test");
    return ConnectorSetup.of(config, StoreCatalog.find(), spec).withMetrics(metrics);
  }

  static ConnectorSetup setup(EngineSpec spec, Object... top) {
    return setup(spec, top(top), StoreMetrics.NONE);
  }

  /** Opens a store for the blocks of an engine. */
  static <S extends Store> S open(S store, EngineSpec spec) {
    Map<String, Object> keys = new LinkedHashMap<>(spec.kv().keys());
    keys.put("device_id", 0L);
    store.configure(StoreConfig.of(keys));
    store.open(StoreContext.of(null));
    return store;
  }

  /** Tokens {@code first}, {@code first + 1} and so on. */
  static int[] tokens(int first, int count) {
    return IntStream.range(first, first + count).toArray();
  }

  static int[] blocks(int... numbers) {
    return numbers;
  }

  /** A step in which every layer is computed. */
  static void step(WorkerConnector worker, StepPlan plan, LayerComputation computation)
      throws InterruptedException {
    worker.startLoad(plan);
    for (int layer = 0; layer < LAYERS; layer++) {
      worker.waitForLayerLoad(layer);
      computation.compute(layer);
      worker.saveLayer(layer);
    }
    worker.waitForSave();
  }

  /** Computes a layer of all requests of a step. */
  @FunctionalInterface
  interface LayerComputation {
    LayerComputation NONE = layer -> {};

    void compute(int layer);
  }
}

package ucm.pipeline.connector;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.IntStream;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.StepPlan;

/** Engines, configurations and stores for tests of the connector. */
public final class TestEngines {

  public static final int BLOCK_TOKENS = 4;
  public static final int LAYERS = 3;

  private TestEngines() {}

  public static EngineSpec gqa(int tpSize) {
    return new EngineSpec(
        "test", "model", "torch.bfloat16", tpSize, false, BLOCK_TOKENS, gqaLayout());
  }

  public static KvLayout gqaLayout() {
    return KvLayout.uniform(LAYERS, 96, 96);
  }

  public static EngineSpec mla(int tpSize) {
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
  public static Map<String, Object> top(Object... namesAndValues) {
    Map<String, Object> values = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      values.put((String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return values;
  }

  public static ConnectorSetup setup(
      EngineSpec spec, Map<String, Object> top, StoreMetrics metrics) {
    UcmConfig config = UcmConfig.of("Fake", Map.of()).withTopLevel(top, "test");
    return ConnectorSetup.of(config, StoreCatalog.find(), spec).withMetrics(metrics);
  }

  public static ConnectorSetup setup(EngineSpec spec, Object... top) {
    return setup(spec, top(top), StoreMetrics.NONE);
  }

  /** Opens a store for the blocks of an engine. */
  public static <S extends Store> S open(S store, EngineSpec spec) {
    Map<String, Object> keys = CommonKeys.values(spec.kv().blockLayout());
    keys.put("device_id", 0L);
    store.configure(StoreConfig.of(keys));
    store.open(StoreContext.of(null));
    return store;
  }

  /** Tokens {@code first}, {@code first + 1} and so on. */
  public static int[] tokens(int first, int count) {
    return IntStream.range(first, first + count).toArray();
  }

  public static int[] blocks(int... numbers) {
    return numbers;
  }

  /** A step in which every layer is computed. */
  public static void step(WorkerConnector worker, StepPlan plan, LayerComputation computation)
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
  public interface LayerComputation {
    LayerComputation NONE = layer -> {};

    void compute(int layer);
  }
}

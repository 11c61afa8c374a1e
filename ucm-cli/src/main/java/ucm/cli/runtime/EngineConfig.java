package ucm.cli.runtime;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;

/** What a command does as an engine: its part of the configuration, and how long it waits. */
public final class EngineConfig {

  private static final String DTYPE = "torch.bfloat16";

  // A task that its store has given up ends a little after its deadline.
  private static final Duration GRACE = Duration.ofSeconds(10);

  private EngineConfig() {}

  /** The values of one worker, whose device is host memory. */
  public static Map<String, Object> of(BlockLayout layout) {
    Map<String, Object> values = CommonKeys.values(layout);
    values.put(CommonKeys.UNIQUE_ID.name(), "ucm-" + ProcessHandle.current().pid());
    values.put(CommonKeys.DEVICE_ID.name(), 0L);
    values.put(CommonKeys.LOCAL_RANK_SIZE.name(), 1L);
    return values;
  }

  /** Such an engine, with the name of its model in block ids and metrics. */
  public static EngineSpec spec(String model, int blockTokens, KvLayout kv) {
    String instance = "ucm-" + ProcessHandle.current().pid();
    return new EngineSpec(instance, model, DTYPE, 1, false, blockTokens, kv);
  }

  /** How long to wait for a task before calling it hung. */
  public static Duration taskTimeout(UcmConfig config) {
    return Duration.ofMillis(config.storeConfig().get(CommonKeys.TIMEOUT_MS)).plus(GRACE);
  }

  /** Waits until a store has written everything; returns the nanoseconds it took. */
  public static long flush(Store store, Duration timeout) throws InterruptedException {
    long start = System.nanoTime();
    FlushResult flushed = store.flush(timeout);
    if (!flushed.ok()) {
      Throwable cause = flushed.cause();
      throw new StoreException(
          "%s did not store everything: %s blocks failed, %s are pending after %s ms%s"
              .formatted(
                  store.name(),
                  flushed.failedCount(),
                  flushed.pendingBlocks(),
                  timeout.toMillis(),
                  cause == null ? "" : ": " + cause.getMessage()),
          cause);
    }
    return System.nanoTime() - start;
  }

  /**
   * Says which keys have no meaning for a command that moves whole blocks by itself, without an
   * engine's connector.
   */
  public static void tellUnused(UcmConfig config, PrintWriter err) {
    ConnectorSettings settings = config.settings();
    if (settings.enableRecordTraces()) {
      err.println("ucm: enable_record_traces is not used here: only an engine writes traces");
    }
    // On by default, which the user did not ask for.
    if (settings.useLayerwise() && config.isSet(ConnectorSettings.USE_LAYERWISE)) {
      err.println("ucm: use_layerwise is not used here: blocks are moved whole");
    }
  }
}

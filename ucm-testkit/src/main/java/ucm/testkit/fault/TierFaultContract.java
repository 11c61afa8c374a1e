package ucm.testkit.fault;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** What an upper tier does while the last stage, which keeps what it has, fails or hangs. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
public abstract class TierFaultContract {

  /** How the last stage behaves during an outage. */
  public enum Outage {
    /** Loads and dumps fail. */
    FAILING,
    /** Loads and dumps do not end, or not before their deadline. */
    HANGING
  }

  /** Blocks that are dumped into the upper tier. */
  protected static final BlockIds IDS = BlockBytes.ids(4, 12);

  /** Blocks that are dumped into the last stage, before the upper tier is opened. */
  protected static final BlockIds BELOW = BlockBytes.ids(5, 4);

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1024, 4096, 8192);
  private static final long LOOK_AGAIN_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

  /** Opens and closes both tiers, and has what they count. */
  protected final StoreFixture tiers = new StoreFixture(LAYOUT);

  @TempDir Path directory;
  private Store lower;

  /** For subclasses. */
  protected TierFaultContract() {}

  /** The upper tier, a store of files that takes a next stage. */
  protected abstract Store newUpper();

  /** What the upper tier's own keys begin with, and the names of what it counts. */
  protected String upperKeys() {
    return "posix_";
  }

  /** The last stage. */
  protected abstract Store newLower() throws Exception;

  /** What the last stage is configured with. */
  protected Map<String, Object> lowerSettings(Path folder) {
    return Map.of();
  }

  /** Has an outage of the last stage begin; returns when it has. */
  protected abstract void begin(Outage outage) throws Exception;

  /** Ends it; called only after {@link #begin}. */
  protected abstract void end() throws Exception;

  @BeforeEach
  final void openLower() throws Exception {
    lower = tiers.open(newLower(), withHealth(lowerSettings(directory.resolve("lower"))));
  }

  @AfterEach
  final void closeAll() {
    tiers.close();
  }

  private static Map<String, Object> withHealth(Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("store_health.health_check_interval_s", 1);
    settings.put("store_health.health_check_timeout_s", 1);
    settings.put("timeout_ms", 5_000);
    settings.putAll(more);
    return settings;
  }

  /** Opens the upper tier above the last stage. */
  protected final Store openUpper(Map<String, Object> more) {
    Map<String, Object> settings = withHealth(more);
    settings.put(upperKeys() + "storage_backends", directory.resolve("upper").toString());
    settings.put("data_dir_shard_bytes", 1);
    return tiers.open(newUpper(), lower, settings, System::nanoTime);
  }

  /** Waits until the last stage is given up, or used again. */
  protected final void awaitBreaker(boolean isOpen) throws Exception {
    await(
        "the breaker is " + (isOpen ? "open" : "closed"),
        () -> tiers.metrics.gauge(upperKeys() + "tier_health_state") > 0 == isOpen);
  }

  /** What is waited for. */
  protected interface Condition {
    /** Whether it is so. */
    boolean holds() throws Exception;
  }

  /** Waits until something is so. */
  protected static void await(String what, Condition condition) throws Exception {
    long end = System.nanoTime() + StoreFixture.PATIENCE.toNanos();
    while (!condition.holds()) {
      assertThat(System.nanoTime() - end).as("not in time: %s", what).isNegative();
      LockSupport.parkNanos(LOOK_AGAIN_NANOS);
    }
  }

  @ParameterizedTest
  @EnumSource
  void goesOnWithoutTheNextStageAndWritesToItLater(Outage outage) throws Exception {
    tiers.dump(lower, BELOW).requireOk();
    assertThat(lower.flush(StoreFixture.PATIENCE).ok()).isTrue();
    Store upper = openUpper(Map.of());
    begin(outage);
    tiers.dump(upper, IDS).requireOk();
    assertThat(upper.lookup(IDS).cardinality()).isEqualTo(IDS.size());
    tiers.load(upper, IDS).requireOk();
    awaitBreaker(true);
    FlushResult flushed = upper.flush(Duration.ofSeconds(1));
    assertThat(flushed.pendingBlocks() + flushed.failedCount())
        .as("what is not below is told")
        .isGreaterThanOrEqualTo(IDS.size());
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
    await(
        "it is refused",
        () -> {
          // A probe that goes well while requests hang has it tried again for a time.
          awaitBreaker(true);
          return isRefused(tiers.load(upper, BELOW));
        });
    assertThat(tiers.metrics.count(upperKeys() + "tier_refused_shards")).isPositive();
    tiers.load(upper, IDS).requireOk();
    end();
    awaitBreaker(false);
    await("all is written", () -> lower.lookup(IDS).cardinality() == IDS.size());
    tiers.load(lower, IDS).requireOk();
    tiers.load(upper, BELOW).requireOk();
  }

  private boolean isRefused(TransferResult missed) {
    assertThat(missed.okCount()).isZero();
    return missed.outcome(0) == ShardOutcome.REFUSED
        && String.valueOf(missed.cause()).contains("next stage, " + lower.name() + ",");
  }

  @ParameterizedTest
  @EnumSource(names = "FAILING")
  void flushTellsWhatCouldNotBeWrittenAndItIsCounted(Outage outage) throws Exception {
    Store upper = openUpper(Map.of());
    begin(outage);
    tiers.dump(upper, IDS).requireOk();
    FlushResult flushed = upper.flush(StoreFixture.PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(IDS.size());
    assertThat(flushed.failedBlocks().size()).isEqualTo(IDS.size());
    assertThat(flushed.cause()).isNotNull();
    assertThat(tiers.metrics.count(upperKeys() + "tier_write_failed_blocks")).isEqualTo(IDS.size());
    assertThat(tiers.metrics.gauge(upperKeys() + "tier_unwritten_blocks")).isEqualTo(IDS.size());
    assertThat(upper.durable(IDS).cardinality()).as("they are still here").isEqualTo(IDS.size());
    tiers.load(upper, IDS).requireOk();
    end();
  }
}

package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.tier.SwitchedStage.State;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** What the upper tier does while the next stage fails or hangs. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
final class TierFaultTest {

  private static final BlockIds IDS = BlockBytes.ids(4, 12);
  private static final BlockIds BELOW = BlockBytes.ids(5, 4);

  @TempDir private Path directory;
  private TierFixture tiers;

  @BeforeEach
  void openStage() {
    tiers = new TierFixture(directory);
  }

  @AfterEach
  void closeAll() {
    tiers.close();
  }

  private void awaitBreaker(boolean isOpen) throws Exception {
    Waiting.until(
        "the breaker is " + (isOpen ? "open" : "closed"),
        () -> (tiers.metrics.gauge("local_tier_health_state") > 0) == isOpen);
  }

  @ParameterizedTest
  @EnumSource(names = {"FAILING", "HANGING"})
  void goesOnWithoutTheNextStageAndWritesToItLater(State state) throws Exception {
    tiers.dump(tiers.stage, BELOW).requireOk();
    LocalTier upper = tiers.open(Map.of());
    tiers.stage.state = state;
    tiers.dump(upper, IDS).requireOk();
    assertThat(upper.lookup(IDS).cardinality()).isEqualTo(IDS.size());
    tiers.load(upper, IDS).requireOk();
    awaitBreaker(true);
    // Asks nothing of it any more.
    int lookups = tiers.stage.lookups.get();
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
    TransferResult missed = tiers.load(upper, BELOW);
    assertThat(missed.outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    assertThat(missed.cause()).hasMessageContaining("next stage, Memory,");
    assertThat(tiers.metrics.count("local_tier_refused_shards")).isPositive();
    tiers.load(upper, IDS).requireOk();
    assertThat(tiers.stage.lookups.get() - lookups).as("but for probes").isLessThan(10);
    tiers.stage.release();
    awaitBreaker(false);
    Waiting.until("all is written", () -> tiers.volume.size() == IDS.size() + BELOW.size());
    tiers.load(upper, BELOW).requireOk();
  }

  @Test
  void flushTellsWhatCouldNotBeWrittenAndItIsCounted() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.stage.state = State.FAILING;
    tiers.dump(upper, IDS).requireOk();
    FlushResult flushed = upper.flush(StoreFixture.PATIENCE);
    assertThat(flushed.failedCount()).isEqualTo(IDS.size());
    assertThat(flushed.failedBlocks().size()).isEqualTo(IDS.size());
    assertThat(flushed.cause()).isNotNull();
    assertThat(tiers.metrics.count("local_tier_write_failed_blocks")).isEqualTo(IDS.size());
    assertThat(tiers.metrics.gauge("local_tier_unwritten_blocks")).isEqualTo(IDS.size());
    assertThat(upper.durable(IDS).cardinality()).as("they are still here").isEqualTo(IDS.size());
    tiers.load(upper, IDS).requireOk();
  }

  @Test
  void aLookUpThatHangsCostsNoMoreThanAProbeMay() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.dump(upper, IDS).requireOk();
    tiers.stage.state = State.HANGING;
    // Returns though nothing is released.
    assertThat(upper.lookup(BELOW).isEmpty()).isTrue();
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
  }

  @Test
  void closesWhileTheNextStageHangs() throws Exception {
    LocalTier upper = tiers.open(Map.of("timeout_ms", 500));
    tiers.stage.state = State.HANGING;
    tiers.dump(upper, IDS).requireOk();
    Task load = upper.load(tiers.memory(BELOW).transfer());
    upper.close();
    assertThat(load.check()).as("memory that the stage still has").isFalse();
    tiers.stage.release();
    assertThat(StoreFixture.ended(load).ok()).isFalse();
  }
}

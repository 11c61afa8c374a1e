package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.LoggerFactory;
import ucm.api.Store;
import ucm.api.Task;
import ucm.testkit.StoreFixture;
import ucm.testkit.fault.MemoryStore;
import ucm.testkit.fault.TierFaultContract;

/** Above a stage that a test switches. */
final class TierFaultTest extends TierFaultContract {

  private final SwitchedStage stage = new SwitchedStage(new MemoryStore.Volume());

  @Override
  protected Store newUpper() {
    return new LocalTier();
  }

  @Override
  protected String upperKeys() {
    return "local_";
  }

  @Override
  protected Store newLower() {
    return stage;
  }

  @Override
  protected void begin(Outage outage) {
    stage.state =
        outage == Outage.FAILING ? SwitchedStage.State.FAILING : SwitchedStage.State.HANGING;
  }

  @Override
  protected void end() {
    stage.release();
  }

  @ParameterizedTest
  @EnumSource
  void asksNothingOfAStageThatIsGivenUp(Outage outage) throws Exception {
    Store upper = openUpper(Map.of());
    begin(outage);
    tiers.dump(upper, IDS).requireOk();
    awaitBreaker(true);
    int lookups = stage.lookups.get();
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
    assertThat(upper.lookup(BELOW).isEmpty()).isTrue();
    tiers.load(upper, IDS).requireOk();
    assertThat(stage.lookups.get() - lookups).as("but for probes").isLessThan(10);
  }

  @Test
  void writesWhatFailedThoughTheStageWasNotGivenUp() throws Exception {
    Store upper = openUpper(Map.of("store_health.enabled", false));
    begin(Outage.FAILING);
    ListAppender<ILoggingEvent> said = new ListAppender<>();
    said.start();
    Logger logger = (Logger) LoggerFactory.getLogger(TierWrites.class);
    logger.addAppender(said);
    logger.setLevel(Level.WARN);
    try {
      tiers.dump(upper, IDS).requireOk();
      assertThat(upper.flush(StoreFixture.PATIENCE).failedCount()).isEqualTo(IDS.size());
    } finally {
      logger.detachAppender(said);
      logger.setLevel(null);
    }
    assertThat(said.list)
        .singleElement()
        .extracting(ILoggingEvent::getFormattedMessage)
        .asString()
        .contains("could not write a block to the next stage", "tier_write_failed_blocks");
    end();
    await("all is written", () -> stage.lookup(IDS).cardinality() == IDS.size());
  }

  @Test
  void aLookUpThatHangsCostsNoMoreThanAProbeMay() throws Exception {
    Store upper = openUpper(Map.of());
    tiers.dump(upper, IDS).requireOk();
    begin(Outage.HANGING);
    // Returns though nothing is released.
    assertThat(upper.lookup(BELOW).isEmpty()).isTrue();
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
  }

  @Test
  void closesWhileTheNextStageHangs() throws Exception {
    Store upper = openUpper(Map.of("timeout_ms", 500));
    begin(Outage.HANGING);
    tiers.dump(upper, IDS).requireOk();
    Task load = upper.load(tiers.memory(BELOW).transfer());
    upper.close();
    assertThat(load.check()).as("memory that the stage still has").isFalse();
    end();
    assertThat(StoreFixture.ended(load).ok()).isFalse();
  }
}

package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.BitSet;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.tier.SwitchedStage.State;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** What leaves the upper tier when its space runs short. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
final class TierEvictionTest {

  private static final int BLOCKS = 16;
  private static final BlockIds IDS = BlockBytes.ids(2, BLOCKS);
  private static final Map<String, Object> WRITE_BACK = Map.of("local_write_policy", "write_back");

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

  /** A store that knows blocks of another one before it, so that none of them was used just now. */
  private LocalTier filled(Map<String, Object> more) throws Exception {
    LocalTier writer = tiers.open(more);
    tiers.dump(writer, IDS).requireOk();
    assertThat(writer.flush(StoreFixture.PATIENCE).ok()).isTrue();
    writer.close();
    for (int i = 0; i < BLOCKS; i++) {
      SmallSpace.usedAt(SmallSpace.file(directory, IDS, i), i);
    }
    return tiers.open(TierFixture.capacity(BLOCKS, more));
  }

  private int here() throws Exception {
    return SmallSpace.names(directory).size();
  }

  @Test
  void removesWhatTheNextStageHas() throws Exception {
    LocalTier upper = filled(Map.of());
    tiers.collect();
    assertThat(here()).isLessThanOrEqualTo(BLOCKS / 2);
    assertThat(tiers.metrics.count("local_tier_kept_blocks")).isZero();
    tiers.load(upper, IDS).requireOk();
  }

  @Test
  void writesBackWhatIsToBeRemoved() throws Exception {
    LocalTier upper = filled(WRITE_BACK);
    tiers.collect();
    assertThat(here()).isLessThanOrEqualTo(BLOCKS / 2);
    assertThat(tiers.volume.size()).isEqualTo(BLOCKS - here());
    tiers.load(upper, IDS).requireOk();
  }

  @ParameterizedTest
  @ValueSource(strings = {"FAILING", "HANGING"})
  void keepsWhatCannotBeWrittenAndRemovesItLater(String state) throws Exception {
    tiers.stage.state = State.valueOf(state);
    LocalTier writer = tiers.open(WRITE_BACK);
    tiers.dump(writer, IDS).requireOk();
    writer.close();
    LocalTier upper = tiers.open(TierFixture.capacity(BLOCKS, WRITE_BACK));
    tiers.collect();
    assertThat(here()).isEqualTo(BLOCKS);
    assertThat(tiers.metrics.count("local_tier_kept_blocks")).isPositive();
    tiers.load(upper, IDS).requireOk();
    tiers.stage.release();
    Waiting.until(
        "the next stage is used again", () -> tiers.metrics.gauge("local_tier_health_state") == 0);
    upper.close();
    LocalTier later = tiers.open(TierFixture.capacity(BLOCKS, WRITE_BACK));
    tiers.collect();
    assertThat(here()).isLessThan(BLOCKS);
    tiers.load(later, IDS).requireOk();
  }

  @Test
  void flushTellsWhatTheCollectorCouldNotWrite() throws Exception {
    LocalTier upper = filled(WRITE_BACK);
    tiers.collect();
    int below = tiers.volume.size();
    tiers.stage.state = State.FAILING;
    BlockIds more = BlockBytes.ids(3, BLOCKS / 2);
    tiers.dump(upper, more).requireOk();
    BitSet there = upper.durable(more);
    assertThat(there.cardinality()).isEqualTo(more.size());
    FlushResult flushed = upper.flush(StoreFixture.PATIENCE);
    assertThat(flushed.ok()).as("written back later: %s", flushed).isTrue();
    tiers.collect();
    assertThat(tiers.volume.size()).isEqualTo(below);
    tiers.load(upper, more).requireOk();
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void takesBlocksThatFindNoRoomToTheNextStage(boolean whole) throws Exception {
    LocalTier upper =
        tiers.open(TierFixture.capacity(BLOCKS / 2, Map.of("local_gc_enable", false)));
    tiers.files.collector().awaitFirstRound();
    if (whole) {
      tiers.dump(upper, IDS).requireOk();
    } else {
      tiers.dumpShard(upper, IDS, 0).requireOk();
      tiers.dumpShard(upper, IDS, 1).requireOk();
    }
    assertThat(upper.flush(StoreFixture.PATIENCE)).isEqualTo(FlushResult.clean());
    assertThat(here()).isLessThanOrEqualTo(BLOCKS / 2);
    assertThat(tiers.volume.size()).isEqualTo(BLOCKS);
    assertThat(tiers.metrics.count("local_tier_diverted_shards")).isPositive();
    tiers.load(upper, IDS).requireOk();
  }
}

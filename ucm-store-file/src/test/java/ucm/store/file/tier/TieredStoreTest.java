package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;

/** What goes on between two tiers that both work. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
final class TieredStoreTest {

  private static final BlockIds IDS = BlockBytes.ids(1, 16);

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

  private void below(BlockIds ids) throws Exception {
    tiers.dump(tiers.stage, ids).requireOk();
    tiers.stage.dumps.set(0);
  }

  private long shards(BlockIds ids) {
    return (long) ids.size() * tiers.layout.shardCount();
  }

  private void awaitPromotion(BlockIds ids) throws Exception {
    Waiting.until(
        "blocks are kept here", () -> tiers.files.lookup(ids).cardinality() == ids.size());
  }

  @Test
  void writesBlocksThatCameLayerByLayerWhenTheyAreWhole() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.dumpShard(upper, IDS, 1).requireOk();
    assertThat(tiers.stage.dumps).hasValue(0);
    tiers.dumpShard(upper, IDS, 0).requireOk();
    assertThat(upper.flush(StoreFixture.PATIENCE).ok()).isTrue();
    assertThat(tiers.metrics.count("local_tier_written_blocks")).isEqualTo(IDS.size());
    tiers.load(tiers.stage, IDS).requireOk();
  }

  @Test
  void asksTheNextStageForWhatIsNotHereAndKeepsIt() throws Exception {
    below(IDS);
    LocalTier upper = tiers.open(Map.of());
    assertThat(upper.lookup(IDS).cardinality()).isEqualTo(IDS.size());
    tiers.load(upper, IDS).requireOk();
    awaitPromotion(IDS);
    assertThat(tiers.stage.loads).as("one, and each block again").hasValue(1 + IDS.size());
    tiers.load(upper, IDS).requireOk();
    assertThat(tiers.stage.loads).hasValue(1 + IDS.size());
    assertThat(tiers.metrics.count("local_tier_lower_load_shards")).isEqualTo(shards(IDS));
    assertThat(tiers.metrics.count("local_tier_upper_load_shards")).isEqualTo(shards(IDS));
    assertThat(tiers.metrics.count("local_tier_promoted_shards")).isEqualTo(shards(IDS));
    assertThat(tiers.stage.dumps).hasValue(0);
  }

  @Test
  void keepsBlocksThatAreLoadedLayerByLayer() throws Exception {
    below(IDS);
    LocalTier upper = tiers.open(Map.of());
    tiers.loadShard(upper, IDS, 0).requireOk();
    tiers.loadShard(upper, IDS, 1).requireOk();
    awaitPromotion(IDS);
    assertThat(upper.flush(StoreFixture.PATIENCE).ok()).isTrue();
  }

  @Test
  void keepsBlocksWithTheirSecondUseWhenTold() throws Exception {
    below(IDS);
    LocalTier upper = tiers.open(Map.of("local_admission", "second_use"));
    tiers.loadShard(upper, IDS, 0).requireOk();
    tiers.loadShard(upper, IDS, 1).requireOk();
    assertThat(tiers.metrics.count("local_tier_promoted_shards")).isZero();
    assertThat(tiers.files.lookup(IDS).isEmpty()).isTrue();
    tiers.loadShard(upper, IDS, 0).requireOk();
    tiers.loadShard(upper, IDS, 1).requireOk();
    awaitPromotion(IDS);
  }

  @Test
  void loadsFromBothAtOnce() throws Exception {
    LocalTier upper = tiers.open(Map.of("local_write_policy", "write_back"));
    tiers.dump(upper, IDS.slice(0, 5)).requireOk();
    below(IDS.slice(5, 9));
    tiers.dump(upper, IDS.slice(9, 12)).requireOk();
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(11);
    assertThat(upper.lookup(IDS).cardinality()).isEqualTo(12);
    tiers.load(upper, IDS.slice(0, 12)).requireOk();
    assertThat(tiers.metrics.count("local_tier_lower_load_shards"))
        .isEqualTo(shards(IDS.slice(5, 9)));
  }

  @Test
  void loadsFromTheNextStageAtOnceWhatALookUpHasFoundThere() throws Exception {
    below(IDS);
    LocalTier upper = tiers.open(Map.of());
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
    tiers.load(upper, IDS).requireOk();
    assertThat(tiers.metrics.count("local_load_missing_shards")).as("tried here").isZero();
  }

  @Test
  void asksTheNextStageOnceForARun() throws Exception {
    below(IDS);
    LocalTier upper = tiers.open(Map.of());
    assertThat(upper.lookupPrefix(IDS)).isEqualTo(IDS.size() - 1);
    assertThat(upper.lookup(IDS).cardinality()).isEqualTo(IDS.size());
    assertThat(tiers.stage.lookups).hasValue(2);
  }

  @Test
  void loadsADamagedBlockFromTheNextStageAndRepairsIt() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.dump(upper, IDS).requireOk();
    assertThat(upper.flush(StoreFixture.PATIENCE).ok()).isTrue();
    Path file = SmallSpace.file(directory, IDS, 3);
    byte[] bytes = Files.readAllBytes(file);
    bytes[100] ^= 1;
    Files.write(file, bytes);
    tiers.load(upper, IDS).requireOk();
    assertThat(tiers.metrics.count("local_corrupt_blocks")).isEqualTo(1);
    // Of which this time no shard comes from here.
    tiers.load(upper, IDS).requireOk();
    awaitPromotion(IDS);
    tiers.load(tiers.files, IDS).requireOk();
  }

  @Test
  void removesFromBoth() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.dump(upper, IDS).requireOk();
    assertThat(upper.flush(StoreFixture.PATIENCE).ok()).isTrue();
    assertThat(upper.canRemove()).isTrue();
    assertThat(upper.remove(IDS).cardinality()).isEqualTo(IDS.size());
    assertThat(upper.lookup(IDS).isEmpty()).isTrue();
    assertThat(tiers.volume.size()).isZero();
  }

  @Test
  void writesWhenItClosesWhatNoFlushHasWaitedFor() throws Exception {
    LocalTier upper = tiers.open(Map.of());
    tiers.dump(upper, IDS).requireOk();
    upper.close();
    assertThat(tiers.volume.size()).isEqualTo(IDS.size());
  }

  @Test
  void refusesANextStageInTheSameDirectories() {
    assertThatThrownBy(
            () ->
                tiers.open(
                    new LocalTier(),
                    tiers.open(
                        new LowerFileStore(),
                        Map.of("storage_backends", directory.resolve("lower").toString())),
                    Map.of("storage_backends", directory.toString()),
                    System::nanoTime))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("local_storage_backends")
        .hasMessageContaining("Lower");
    assertThatThrownBy(
            () ->
                tiers.open(
                    new LocalTier(),
                    tiers.stage,
                    Map.of("storage_backends", directory.toString(), "local_index_max_blocks", 0),
                    System::nanoTime))
        .hasMessageContaining("local_index_max_blocks");
  }
}

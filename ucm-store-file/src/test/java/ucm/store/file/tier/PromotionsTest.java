package ucm.store.file.tier;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.store.file.LocalFileStore;
import ucm.store.file.config.FileStoreConfig;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.PromptStore;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** When blocks are kept that were loaded from below. */
@Timeout(value = 2, unit = TimeUnit.MINUTES)
final class PromotionsTest {

  private static final BlockIds IDS = BlockBytes.ids(1, 6);

  private final RecordingMetrics metrics = new RecordingMetrics();
  private final SlowStore upper = new SlowStore();
  private final LowerTier lower =
      new LowerTier(
          LocalFileStore.KIND,
          new PromptStore(),
          new FileStoreConfig.Health(false, 1, 1, 1, 1),
          metrics,
          System::nanoTime,
          Runnable::run,
          TimeUnit.MINUTES.toNanos(1));
  private final Promotions promotions =
      new Promotions(
          upper,
          lower,
          new TierMoves(
              SmallSpace.LAYOUT, 5 * SmallSpace.LAYOUT.blockSize(), lower::loadToCopy, upper::dump),
          true,
          new TierMetrics(LocalFileStore.KIND, metrics));
  private final Thread thread = new Thread(promotions::run, "test-keep");

  /** Its dumps end when a test says so. */
  private static final class SlowStore extends PromptStore {

    final List<TransferTask> dumps = new CopyOnWriteArrayList<>();

    @Override
    public Task dump(Transfer transfer) {
      TransferTask task = new TransferTask(dumps.size(), transfer);
      dumps.add(task);
      return task;
    }

    void fail(int dump) {
      TransferTask task = dumps.get(dump);
      for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
        task.end(shard, ShardOutcome.REFUSED, new StoreException("the disk is full"));
      }
    }

    void end(int dump) {
      TransferTask task = dumps.get(dump);
      for (int shard = 0; shard < task.transfer().shardCount(); shard++) {
        task.ok(shard);
      }
    }
  }

  @BeforeEach
  void start() {
    thread.start();
  }

  @AfterEach
  void end() throws InterruptedException {
    promotions.close();
    thread.join();
  }

  private void load(BlockIds ids) {
    Transfer loaded =
        TransferMemory.ofBlocks(SmallSpace.LAYOUT, Placement.SCATTERED, ids).transfer();
    BitSet all = new BitSet();
    all.set(0, loaded.shardCount());
    promotions.loaded(loaded, all);
  }

  private void awaitDumps(int count) throws Exception {
    Waiting.until(count + " blocks are being kept", () -> upper.dumps.size() >= count);
  }

  @Test
  void writesOneBlockAtATimeBesideLoadsAndTwoAfterThem() throws Exception {
    promotions.loadBegan();
    load(IDS);
    awaitDumps(1);
    upper.end(0);
    // Though the load goes on, which may hang.
    awaitDumps(2);
    assertThat(upper.dumps).hasSize(2);
    promotions.loadEnded();
    awaitDumps(3);
    upper.end(1);
    upper.end(2);
    awaitDumps(5);
  }

  @Test
  void readsNothingMoreInVainAfterABlockThatCouldNotBeKept() throws Exception {
    promotions.loadBegan();
    load(IDS.slice(0, 1));
    awaitDumps(1);
    load(IDS.slice(1, 3));
    upper.fail(0);
    long shards = SmallSpace.LAYOUT.shardCount();
    Waiting.until(
        "all are given up", () -> metrics.count("local_tier_unpromoted_shards") >= 3 * shards);
    Waiting.until(
        "one is kept again",
        () -> {
          load(IDS.slice(3, 4));
          return upper.dumps.size() > 1;
        });
    assertThat(upper.dumps.getLast().transfer().ids().slice(0, 1)).isEqualTo(IDS.slice(3, 4));
    assertThat(metrics.count("local_tier_promoted_shards")).isZero();
  }

  @Test
  void keepsABlockOnceThoughItIsLoadedAgainMeanwhile() throws Exception {
    promotions.loadBegan();
    load(IDS.slice(0, 1));
    awaitDumps(1);
    load(IDS.slice(1, 2));
    load(IDS.slice(1, 2));
    promotions.loadEnded();
    awaitDumps(2);
    upper.end(0);
    upper.end(1);
    Waiting.until(
        "both are kept",
        () -> metrics.count("local_tier_promoted_shards") == 2L * SmallSpace.LAYOUT.shardCount());
    assertThat(upper.dumps).hasSize(2);
  }
}

package ucm.store.file.eviction;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.testkit.BlockBytes;

/** The room that the collector makes for writers, and what they get when it cannot. */
final class CollectorRoomTest extends InOneDirectory {

  private static final int BLOCKS = 64;

  CollectorRoomTest() {
    super(LAYOUT);
  }

  private Map<String, Object> settings(int blocks, Map<String, Object> more) {
    return SmallSpace.onThree(directory, blocks, more);
  }

  private BlockIds filled(long seed) throws Exception {
    return SmallSpace.filled(directory, seed, BLOCKS);
  }

  private Set<String> names() throws Exception {
    return SmallSpace.names(directory);
  }

  @Test
  void makesRoomForNewBlocksAndNeverPassesTheCapacity() throws Exception {
    LocalFileStore store = stores.open(settings(40, Map.of()));
    for (int i = 0; i < 30; i++) {
      BlockIds ids = BlockBytes.ids(100 + i, 8);
      stores.dump(store, ids).requireOk();
      assertThat(SmallSpace.bytes(directory)).isLessThanOrEqualTo(40 * FILE);
      store.collector().makeRound();
      assertThat(SmallSpace.bytes(directory)).isLessThanOrEqualTo(28 * FILE);
      assertThat(stores.load(store, ids).ok()).as("what was dumped last").isTrue();
    }
    assertThat(stores.metrics.count("local_refused_blocks")).isZero();
  }

  @Test
  void aWriterThatFindsNoRoomWaitsForTheCollectorWhichLeavesNoMoreRoomThanItMust()
      throws Exception {
    int most = 400;
    Map<String, Object> defaults =
        Map.of("local_gc_trigger_threshold_ratio", 0.98, "local_gc_recycle_percent", 0.03);
    LocalFileStore store = stores.open(settings(most, defaults));
    for (int i = 0; i < 100; i++) {
      BlockIds ids = BlockBytes.ids(300 + i, 16);
      if (i % 2 == 0) {
        stores.dump(store, ids).requireOk();
      } else {
        stores.dumpShard(store, ids, 0).requireOk();
        stores.dumpShard(store, ids, 1).requireOk();
      }
      assertThat(SmallSpace.bytes(directory)).isLessThanOrEqualTo(most * FILE);
      if (16 * (i + 1) >= most) {
        assertThat(names()).hasSizeGreaterThanOrEqualTo((int) (0.95 * most) - 1);
      }
    }
    assertThat(stores.metrics.count("local_refused_blocks")).isZero();
  }

  @Test
  void refusesAtOnceAndCountsNothingWhenTheCollectorCanRemoveNothing() throws Exception {
    filled(16);
    files.failAll(FaultyFiles.Call.REMOVE, Errno.EROFS);
    LocalFileStore store = stores.open(files, settings(64, Map.of()));
    assertThat(stores.dumpShard(store, BlockBytes.ids(17, 1), 0).outcome(0))
        .isEqualTo(ShardOutcome.REFUSED);
    assertThat(names()).hasSize(BLOCKS);
    assertThat(stores.metrics.count("local_gc_runs")).isPositive();
    assertThat(stores.metrics.count("local_gc_removed_blocks")).isZero();
    assertThat(stores.metrics.gauge("local_used_bytes")).isEqualTo(64.0 * FILE);
  }

  @Test
  void makesRoomInADirectoryThatIsAtItsFloorAndOnNoOther() throws Exception {
    filled(13);
    BlockIds one = BlockBytes.ids(14, 1);
    // More than any disk has.
    LocalFileStore store = stores.open(settings(1000, Map.of("local_min_free_gb", 1e9)));
    store.collector().makeRound();
    assertThat(names()).hasSize(BLOCKS);
    Map<Path, Integer> before = perDirectory();
    assertThat(stores.dumpShard(store, one, 0).outcome(0)).isEqualTo(ShardOutcome.REFUSED);
    store.collector().makeRound();
    Map<Path, Integer> after = perDirectory();
    before.forEach((directory, blocks) -> after.merge(directory, -blocks, Integer::sum));
    assertThat(after.values().stream().filter(change -> change < 0)).hasSize(1);
  }

  private Map<Path, Integer> perDirectory() throws Exception {
    Map<Path, Integer> blocks = new HashMap<>();
    for (Path block : SmallSpace.blocks(directory)) {
      blocks.merge(directory.resolve(directory.relativize(block).getName(0)), 1, Integer::sum);
    }
    return blocks;
  }
}

package ucm.store.file.lease;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.store.file.LocalFileStore;
import ucm.store.file.block.Quarantine;
import ucm.store.file.fixture.NeighbourProcess;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;

/** Two processes with one directory, each of which does what the other does not expect. */
@Timeout(value = 3, unit = TimeUnit.MINUTES)
final class NeighboursTest {

  private static final int MANY = 10_000;

  @TempDir private Path directory;

  @Test
  void writeTheSameBlocksLayerByLayerWhileOthersLoadThem() throws Exception {
    int blocks = 40;
    try (NeighbourProcess layers = new NeighbourProcess(directory, MANY);
        NeighbourProcess whole = new NeighbourProcess(directory, MANY);
        TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open(SmallSpace.capacity(MANY, Map.of()));
      for (int round = 0; round < 6; round++) {
        BlockIds ids = BlockBytes.ids(round, blocks);
        layers.tell("layers " + round + " " + blocks);
        whole.tell("whole " + round + " " + blocks);
        for (int shard = 0; shard < LAYOUT.shardCount(); shard++) {
          stores.dumpShard(store, ids, shard).requireOk();
          assertThat(NeighbourProcess.load(stores, store, ids)).endsWith(" 0 damaged");
        }
        assertThat(layers.answer()).isEqualTo("dumped");
        assertThat(whole.answer()).isEqualTo("dumped");
        assertThat(layers.ask("load " + round + " " + blocks))
            .isEqualTo("40 right, 0 missing, 0 damaged");
        assertThat(stores.load(store, ids).ok()).isTrue();
      }
      assertThat(stores.temps()).isEmpty();
      assertThat(stores.metrics.count("local_dump_failed_blocks")).isZero();
    }
  }

  @Test
  void oneLoadsWhileTheOtherCollects() throws Exception {
    int rounds = 12;
    try (NeighbourProcess collector = new NeighbourProcess(directory, 40);
        TestStores stores = new TestStores(directory, LAYOUT)) {
      assertThat(collector.ask("round")).isEqualTo("true 0");
      LocalFileStore store =
          stores.open(SmallSpace.capacity(MANY, Map.of("local_gc_enable", false)));
      int right = 0;
      int missing = 0;
      String removed = "";
      for (int round = 0; round < rounds; round++) {
        stores.dump(store, BlockBytes.ids(round, 20)).requireOk();
        // One round of the other for each of this one, and loads until it is over: neither depends
        // on how fast the other is. Of four times 20 blocks it leaves 40.
        collector.tell("round");
        do {
          for (int old = Math.max(0, round - 3); old <= round; old++) {
            TransferResult result = stores.load(store, BlockBytes.ids(old, 20));
            for (int shard = 0; shard < 20 * LAYOUT.shardCount(); shard++) {
              assertThat(result.outcome(shard)).isIn(ShardOutcome.OK, ShardOutcome.MISSING);
            }
            right += result.okCount();
            missing += 20 * LAYOUT.shardCount() - result.okCount();
          }
        } while (!collector.hasAnswered());
        removed = collector.answer();
      }
      assertThat(right).isPositive();
      assertThat(missing).isPositive();
      assertThat(removed).as("all but 40").isEqualTo("true " + (20 * rounds - 40));
      assertThat(stores.metrics.count("local_corrupt_blocks")).isZero();
    }
  }

  @Test
  void severalPassTheCapacityByTheirSharesOnlyAndAreNotRefused() throws Exception {
    int capacity = 320;
    int task = 10;
    int processes = 3;
    // A 32nd for each, and a task of each that is being written.
    int most = capacity + processes * (capacity / 32 + task);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      // First, so that it is the one that collects, from 70% on.
      LocalFileStore store = stores.open(SmallSpace.capacity(capacity, Map.of()));
      store.collector().makeRound();
      try (NeighbourProcess second = new NeighbourProcess(directory, capacity);
          NeighbourProcess third = new NeighbourProcess(directory, capacity)) {
        store.collector().makeRound();
        assertThat(second.ask("round")).endsWith(" 0");
        assertThat(third.ask("round")).endsWith(" 0");
        for (int round = 0; round < 20; round++) {
          second.tell("whole " + (1000 + round) + " " + task);
          third.tell("whole " + (2000 + round) + " " + task);
          stores.dump(store, BlockBytes.ids(3000 + round, task)).requireOk();
          assertThat(second.answer()).isEqualTo("dumped");
          assertThat(third.answer()).isEqualTo("dumped");
          assertThat(SmallSpace.blocks(directory))
              .as("round %d", round)
              .hasSizeLessThanOrEqualTo(most);
        }
        assertThat(SmallSpace.blocks(directory))
            .as("the store is used")
            .hasSizeGreaterThan(capacity / 2);
        assertThat(stores.metrics.count("local_refused_blocks")).isZero();
      }
    }
  }

  @Test
  void oneRemovesBlocksThatTheOtherKnows() throws Exception {
    BlockIds ids = BlockBytes.ids(50, 64);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store =
          stores.open(SmallSpace.capacity(MANY, Map.of("local_gc_enable", false)));
      stores.dump(store, ids).requireOk();
      // The store that makes the first round has the lease, so this store must not have made one
      // since.
      store.close();
      LocalFileStore knowing = stores.open();
      assertThat(stores.load(knowing, ids).ok()).isTrue();
      try (NeighbourProcess collector = new NeighbourProcess(directory, 16)) {
        assertThat(collector.ask("round")).isEqualTo("true 48");
        assertThat(knowing.lookup(ids).cardinality()).as("known by heart").isEqualTo(64);
        assertThat(NeighbourProcess.load(stores, knowing, ids))
            .isEqualTo("16 right, 48 missing, 0 damaged");
        assertThat(knowing.lookup(ids).cardinality()).isEqualTo(16);
        NeighbourProcess.dumpLayers(stores, knowing, ids);
        assertThat(stores.load(knowing, ids).ok()).isTrue();
        assertThat(collector.ask("load 50 64")).isEqualTo("64 right, 0 missing, 0 damaged");
      }
    }
  }

  @Test
  void oneQuarantinesWhatTheOtherKnows() throws Exception {
    BlockIds ids = BlockBytes.ids(60, 8);
    try (NeighbourProcess other = new NeighbourProcess(directory, MANY);
        TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open(SmallSpace.capacity(MANY, Map.of()));
      stores.dump(store, ids).requireOk();
      for (int round = 0; round < 10; round++) {
        for (int i = 0; i < ids.size(); i++) {
          byte[] bytes = Files.readAllBytes(stores.file(ids, i));
          bytes[4096 + 13 * round + i] ^= 1;
          Files.write(stores.file(ids, i), bytes);
        }
        // Both at once: one of them moves each file aside, the other misses it, or both see damage.
        other.tell("load 60 8");
        assertThat(NeighbourProcess.load(stores, store, ids))
            .as("round %d", round)
            .startsWith("0 right, ");
        assertThat(other.answer()).startsWith("0 right, ");
        for (int i = 0; i < ids.size(); i++) {
          assertThat(stores.file(ids, i)).doesNotExist();
        }
        assertThat(store.lookup(ids).isEmpty()).isTrue();
        stores.dump(store, ids).requireOk();
        assertThat(other.ask("load 60 8")).isEqualTo("8 right, 0 missing, 0 damaged");
      }
      assertThat(stores.in(".quarantine").size()).isBetween(8, 2 * Quarantine.MAX_FILES);
    }
  }

  @Test
  void oneIsKilledWhileItCollectsAndTheOtherTakesOver() throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      for (int round = 0; round < 3; round++) {
        try (NeighbourProcess collector = new NeighbourProcess(directory, 30)) {
          assertThat(collector.ask("round")).startsWith("true ");
          LocalFileStore store = stores.open(SmallSpace.capacity(MANY, Map.of()));
          store.collector().makeRound();
          assertThat(store.collector().holdsLease()).isFalse();
          assertThat(collector.ask("rounds")).isEqualTo("begun");
          stores.dump(store, BlockBytes.ids(70 + round, 100)).requireOk();
          collector.kill();
          store.collector().makeRound();
          assertThat(store.collector().holdsLease()).isTrue();
          assertThat(NeighbourProcess.load(stores, store, BlockBytes.ids(70 + round, 100)))
              .endsWith(" 0 damaged");
          store.close();
        }
      }
    }
  }
}

package ucm.store.file.admin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;
import static ucm.store.file.fixture.StoredTree.LOOK_ONLY;
import static ucm.store.file.fixture.StoredTree.MOVE;
import static ucm.store.file.fixture.StoredTree.NO_DAMAGE;
import static ucm.store.file.fixture.StoredTree.QUIET;
import static ucm.store.file.fixture.StoredTree.directories;
import static ucm.store.file.fixture.StoredTree.snapshot;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.CollectResult;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.NeighbourProcess;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.StoredTree;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.lease.WriterLease;
import ucm.store.file.space.SpaceLimit;
import ucm.testkit.BlockBytes;

/** Collection of directories by hand, on real trees, beside stores that use them. */
final class DirectoriesCollectTest {

  @TempDir private Path directory;

  private StoredTree tree;

  @BeforeEach
  void makeTree() {
    tree = new StoredTree(directory);
  }

  @Test
  void removesTheColdestOfSeveralDirectoriesWhateverTheirOrder() throws Exception {
    Path a = directory.resolve("a");
    Path b = directory.resolve("b");
    BlockIds ids =
        tree.fill(10, 64, LAYOUT, Map.of("storage_backends", List.of(b.toString(), a.toString())));
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < 64; i++) {
      SmallSpace.usedAt(tree.file(ids, i), (i * 37) % 64);
      if ((i * 37) % 64 >= 44) {
        expected.add(ids.hex(i));
      }
    }
    Map<String, String> before = snapshot(directory);
    CollectPlan dry = new CollectPlan(20 * FILE, null, true);
    CollectResult would = directories(a, b).collect(dry, QUIET);
    assertThat(would).isEqualTo(new CollectResult(64 * FILE, 20 * FILE, 44, 44 * FILE, 0, true));
    assertThat(snapshot(directory)).as("nothing is changed").isEqualTo(before);
    CollectPlan plan = new CollectPlan(20 * FILE, null, false);
    assertThat(directories(a, b).collect(plan, QUIET)).isEqualTo(would);
    assertThat(SmallSpace.names(directory)).isEqualTo(expected);
    CollectResult half = directories(a, b).collect(new CollectPlan(null, 0.5, false), QUIET);
    assertThat(half.removedBlocks()).isEqualTo(10);
  }

  @Test
  void removesLeavesBeforeRootsByWhatAnEngineNoted() throws Exception {
    BlockIds prompt = BlockBytes.ids(11, 16);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open(SmallSpace.capacity(1000, Map.of()));
      stores.dump(store, prompt).requireOk();
      assertThat(store.lookupPrefix(prompt)).isEqualTo(15);
    }
    tree.directories().collect(new CollectPlan(6 * FILE, null, false), QUIET);
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < 6; i++) {
      expected.add(prompt.hex(i));
    }
    assertThat(SmallSpace.names(directory)).isEqualTo(expected);
  }

  @Test
  void collectsByTheConfiguredCapacity() throws Exception {
    tree.fill(12, 64);
    Map<String, Object> settings = new HashMap<>();
    settings.put("local_capacity_gb", (double) (80 * FILE) / SpaceLimit.GB);
    settings.put("local_gc_trigger_threshold_ratio", 0.7);
    settings.put("local_gc_recycle_percent", 0.25);
    StoreDirectories configured = directories(settings, directory);
    assertThat(configured.hasOwnLimit()).isTrue();
    CollectPlan plan = new CollectPlan(null, null, false);
    assertThat(configured.collect(plan, QUIET).removedBlocks()).isEqualTo(16);
    assertThat(configured.collect(plan, QUIET).removedBlocks()).as("48 of 80").isZero();
    assertThat(tree.directories().hasOwnLimit()).isFalse();
  }

  @Test
  void sparesALivingWriterClearsUpAfterADeadOneAndRespectsTheLease() throws Exception {
    try (NeighbourProcess process = new NeighbourProcess(directory, 100)) {
      assertThat(process.ask("begin 77 1")).isEqualTo("begun");
      assertThat(process.ask("round")).startsWith("true ");
      tree.fill(13, 8);
      DirectorySummary living = tree.summary();
      assertThat(living.livingTempFiles()).isEqualTo(1);
      assertThat(living.deadTempFiles()).isZero();
      assertThat(living.collector())
          .isEqualTo("process " + process.pid() + " on " + WriterLease.host() + ", which lives");
      CollectPlan all = new CollectPlan(0L, null, false);
      assertThatThrownBy(() -> tree.directories().collect(all, QUIET))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("process " + process.pid());
      assertThat(SmallSpace.names(directory)).hasSize(8);
      process.kill();
      assertThat(tree.summary().deadTempFiles()).isEqualTo(1);
      assertThat(tree.summary().collector()).isEqualTo("none");
      // One whose lease is gone as well.
      Path folder = tree.file(BlockBytes.ids(13, 8), 0).getParent();
      Path orphan =
          folder.resolve(BlockBytes.ids(13, 8).hex(0) + ".host-1-0123456789abcdef-0000000001.tmp");
      Files.write(orphan, new byte[100]);
      // That of the original tells nothing of its writer.
      Path unknown = folder.resolve(BlockBytes.ids(13, 8).hex(0) + ".tmp");
      Files.write(unknown, new byte[100]);
      assertThat(tree.summary().unknownTempFiles()).isEqualTo(1);
      CollectPlan dry = new CollectPlan(null, 1.0, true);
      assertThat(tree.directories().collect(dry, QUIET).removedTempFiles()).isEqualTo(2);
      assertThat(orphan).exists();
      CollectPlan keepAll = new CollectPlan(null, 1.0, false);
      CollectResult result = tree.directories().collect(keepAll, QUIET);
      assertThat(result.removedTempFiles()).isEqualTo(2);
      assertThat(result.removedBlocks()).isZero();
      assertThat(orphan).doesNotExist();
      assertThat(unknown).exists();
      assertThat(directory.resolve(".writers")).isEmptyDirectory();
    }
  }

  @Test
  void removesNothingOfAWriterThatLivesWithoutALease() throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open();
      BlockIds ids = BlockBytes.ids(14, 4);
      stores.dumpShard(store, ids, 0).requireOk();
      assertThat(tree.summary().livingTempFiles()).isEqualTo(4);
      CollectPlan all = new CollectPlan(0L, null, false);
      CollectResult result = tree.directories().collect(all, QUIET);
      assertThat(result.removedTempFiles()).isZero();
      assertThat(stores.temps()).hasSize(4);
      stores.dumpShard(store, ids, 1).requireOk();
      assertThat(stores.load(store, ids).ok()).isTrue();
    }
  }

  @Test
  void removedBlocksAreMissesForAStoreOfAnotherProcess() throws Exception {
    CollectPlan half = new CollectPlan(null, 0.5, false);
    try (NeighbourProcess engine = new NeighbourProcess(directory, 0)) {
      for (int missed = 0; missed < 3; ) {
        for (String what : List.of("whole 60 32", "load 60 32")) {
          engine.tell(what);
          do {
            tree.directories().collect(half, QUIET);
            // What it writes is never damaged in the eyes of others.
            tree.directories().verify(MOVE, QUIET, NO_DAMAGE);
            assertThat(tree.summary().faultyFiles()).isZero();
          } while (!engine.hasAnswered());
          String answer = engine.answer();
          assertThat(answer).matches("dumped|.* 0 damaged");
          missed += answer.matches("32 right.*|dumped") ? 0 : 1;
        }
      }
    }
  }

  @Test
  void stopsWhenTold() throws Exception {
    tree.fill(15, 50);
    Observer impatient =
        new Observer() {
          private volatile boolean stopped;

          @Override
          public void at(long done, long total) {
            stopped = true;
          }

          @Override
          public boolean isStopped() {
            return stopped;
          }
        };
    CollectPlan all = new CollectPlan(0L, null, false);
    CollectResult result = tree.directories().collect(all, impatient);
    assertThat(result.isComplete()).isFalse();
    assertThat(result.removedBlocks()).isEqualTo(1);
    assertThat(SmallSpace.names(directory)).hasSize(49);
    VerifyResult verified = tree.directories().verify(LOOK_ONLY, impatient, NO_DAMAGE);
    assertThat(verified.isComplete()).isFalse();
  }
}

package ucm.store.file.eviction;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.SmallSpace.LAYOUT;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.platform.libc.Errno;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Which blocks are removed when space runs short, and which never. */
final class CollectorTest extends InOneDirectory {

  private static final Map<String, Object> HALF_STAYS =
      Map.of("local_gc_trigger_threshold_ratio", 0.5, "local_gc_recycle_percent", 0);

  private static final int BLOCKS = 64;

  // Of blocks; what a store remembers of its space is read when it opens.
  private final FaultyFiles.Hang reads = files.hold(FaultyFiles.Call.READ, "ucm-local-io-");

  CollectorTest() {
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
  void removesTheColdestOfAllDirectories() throws Exception {
    BlockIds ids = filled(1);
    List<Integer> coldestFirst = new ArrayList<>();
    for (int i = 0; i < BLOCKS; i++) {
      coldestFirst.add(i);
    }
    Collections.shuffle(coldestFirst, new Random(5));
    for (int i = 0; i < BLOCKS; i++) {
      SmallSpace.usedAt(SmallSpace.file(directory, ids, coldestFirst.get(i)), i);
    }
    Set<String> expected = new TreeSet<>();
    coldestFirst.subList(16, BLOCKS).forEach(i -> expected.add(ids.hex(i)));
    // 64 of 80 are used, which is above 0.7 of them; a quarter of 64 leads below.
    LocalFileStore store = stores.open(settings(80, Map.of("local_gc_recycle_percent", 0.25)));
    store.collector().makeRound();
    assertThat(names()).isEqualTo(expected);
    assertThat(stores.metrics.count("local_gc_runs")).isEqualTo(1);
    assertThat(stores.metrics.count("local_gc_removed_blocks")).isEqualTo(16);
    assertThat(stores.metrics.count("local_gc_removed_bytes")).isEqualTo(16 * FILE);
    assertThat(stores.metrics.gauge("local_used_bytes")).isEqualTo(48.0 * FILE);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
  }

  @Test
  void blocksOfATimeToComeGoBeforeAllOthersInTheirOrder() throws Exception {
    BlockIds ids = filled(1);
    // In 2150, seconds after 2020.
    long toCome = TimeUnit.DAYS.toSeconds(365L * 130);
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < BLOCKS; i++) {
      SmallSpace.usedAt(SmallSpace.file(directory, ids, i), i < 32 ? toCome + i : i);
      expected.add(ids.hex(i));
    }
    for (int i = 0; i < 16; i++) {
      expected.remove(ids.hex(i));
    }
    LocalFileStore store = stores.open(settings(80, Map.of("local_gc_recycle_percent", 0.25)));
    store.collector().makeRound();
    assertThat(names()).isEqualTo(expected);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
  }

  @Test
  void givesItsLocksBackWhenAnInterruptedThreadClosesIt() throws Exception {
    LocalFileStore one = stores.open(settings(BLOCKS, Map.of()));
    one.collector().awaitFirstRound();
    assertThat(one.collector().holdsLease()).isTrue();
    LocalFileStore other = stores.open(settings(BLOCKS, Map.of()));
    other.collector().makeRound();
    assertThat(other.collector().holdsLease()).isFalse();
    Thread.currentThread().interrupt();
    one.collector().close();
    assertThat(Thread.interrupted()).isTrue();
    Waiting.until(
        "the other has the locks",
        () -> {
          other.collector().makeRound();
          return other.collector().holdsLease();
        });
  }

  @Test
  void removesNothingBelowTheThresholdOrWhenSwitchedOff() throws Exception {
    BlockIds ids = filled(3);
    for (Map<String, Object> more :
        List.<Map<String, Object>>of(
            Map.of("local_gc_trigger_threshold_ratio", 1), Map.of("local_gc_enable", false))) {
      LocalFileStore store = stores.open(settings(BLOCKS, more));
      store.collector().makeRound();
      assertThat(store.lookup(ids).cardinality()).isEqualTo(BLOCKS);
      assertThat(stores.metrics.count("local_gc_runs")).isZero();
      store.close();
    }
  }

  @Test
  void removesTheLeavesOfAPrefixBeforeItsRoot() throws Exception {
    BlockIds prompt = BlockBytes.ids(7, 16);
    BlockIds other = BlockBytes.ids(8, 16);
    AtomicLong clock = new AtomicLong();
    LocalFileStore store =
        stores.open(new LibcFileOperations(), clock::get, settings(40, HALF_STAYS));
    // A round in the middle of a dump would find only some of its blocks.
    store.collector().awaitFirstRound();
    stores.dump(store, prompt).requireOk();
    clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
    stores.dump(store, other.slice(0, 8)).requireOk();
    store.collector().makeRound();
    clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
    assertThat(store.lookup(prompt).cardinality()).as("20 of 40 may stay").isEqualTo(12);
    assertThat(store.lookupPrefix(prompt)).isEqualTo(11);
    // The other was used earlier, and goes first now, from its end.
    clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
    stores.dump(store, BlockBytes.ids(9, 6)).requireOk();
    store.collector().makeRound();
    assertThat(store.lookupPrefix(prompt)).isEqualTo(11);
    assertThat(store.lookupPrefix(other)).isEqualTo(1);
  }

  /** As Cache hands blocks on: each by itself, and those of the next step of the engine later. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void removesTheLeavesFirstOfAPromptWhoseBlocksComeOneByOne(boolean isNoted) throws Exception {
    BlockIds prompt = BlockBytes.ids(7, 16);
    AtomicLong clock = new AtomicLong();
    LocalFileStore store =
        stores.open(new LibcFileOperations(), clock::get, settings(1000, HALF_STAYS));
    store.collector().awaitFirstRound();
    if (isNoted) {
      store.notePrompt(prompt);
    }
    for (int i = 0; i < prompt.size(); i++) {
      clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
      stores.dump(store, prompt.slice(i, i + 1)).requireOk();
    }
    store.collector().makeRound();
    store.close();
    // A restart, as what was learnt of the prompt is in the times of its files.
    store = stores.open(settings(20, HALF_STAYS));
    store.collector().makeRound();
    assertThat(store.lookup(prompt).cardinality()).isEqualTo(10);
    assertThat(store.lookupPrefix(prompt)).isEqualTo(isNoted ? 9 : -1);
  }

  @Test
  void aRootWhoseLaterBlocksAloneAreUsedStaysWithThem() throws Exception {
    BlockIds prompt = BlockBytes.ids(7, 16);
    AtomicLong clock = new AtomicLong();
    LocalFileStore store =
        stores.open(new LibcFileOperations(), clock::get, settings(40, HALF_STAYS));
    store.collector().awaitFirstRound();
    store.notePrompt(prompt);
    stores.dump(store, prompt).requireOk();
    clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
    stores.dump(store, BlockBytes.ids(8, 16)).requireOk();
    clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
    // The engine has the first four on its device.
    assertThat(store.lookupPrefix(prompt.slice(4, 16))).isEqualTo(11);
    store.collector().makeRound();
    assertThat(store.lookupPrefix(prompt)).isEqualTo(15);
  }

  @Test
  void keepsTheTimesOfUseOverARestart() throws Exception {
    BlockIds ids = filled(10);
    for (int i = 0; i < BLOCKS; i++) {
      SmallSpace.usedAt(SmallSpace.file(directory, ids, i), i);
    }
    LocalFileStore store = stores.open(settings(1000, Map.of()));
    assertThat(store.lookupPrefix(ids.slice(0, 4))).isEqualTo(3);
    assertThat(stores.load(store, ids.slice(4, 8)).ok()).isTrue();
    store.close();
    for (int i = 0; i < 8; i++) {
      assertThat(SmallSpace.usedAt(SmallSpace.file(directory, ids, i))).isGreaterThan(BLOCKS);
    }
    assertThat(SmallSpace.usedAt(SmallSpace.file(directory, ids, 8))).isEqualTo(8);
    store = stores.open(settings(20, Map.of()));
    store.collector().makeRound();
    BitSet present = store.lookup(ids);
    assertThat(present.cardinality()).isEqualTo(14);
    assertThat(present.get(0, 8).cardinality()).isEqualTo(8);
    assertThat(present.get(58, BLOCKS).cardinality()).isEqualTo(6);
  }

  @Test
  void foldersThatChangedInATimeToComeAreScannedOnce() throws Exception {
    filled(15);
    for (Path block : SmallSpace.blocks(directory)) {
      Files.setLastModifiedTime(
          block.getParent(), FileTime.from(Instant.now().plus(Duration.ofHours(8))));
    }
    LocalFileStore store = stores.open(files, settings(1000, Map.of()));
    store.collector().awaitFirstRound();
    store.collector().makeRound();
    int before = files.count(FaultyFiles.Call.SIZE);
    store.collector().makeRound();
    int sizes = files.count(FaultyFiles.Call.SIZE) - before;
    assertThat(sizes).as("of no files").isLessThan(BLOCKS);
  }

  /** Where the file system keeps access times at all, this can fail. */
  @Test
  void tellsTimesOfUseByItselfAndNotByLoading() throws Exception {
    BlockIds ids = filled(14);
    Path file = SmallSpace.file(directory, ids, 0);
    SmallSpace.usedAt(file, 7);
    reads.end();
    files.failAll(FaultyFiles.Call.TOUCH, Errno.EIO);
    LocalFileStore store = stores.open(files, settings(1000, Map.of()));
    assertThat(stores.load(store, ids.slice(0, 1)).ok()).isTrue();
    store.close();
    assertThat(files.count(FaultyFiles.Call.TOUCH)).isPositive();
    assertThat(SmallSpace.usedAt(file)).isEqualTo(7);
  }

  @Test
  void leavesABlockAloneThatIsBeingLoaded() throws Exception {
    BlockIds ids = filled(11);
    // Half of the capacity is used: not above the threshold.
    LocalFileStore store =
        stores.open(files, settings(2 * BLOCKS, Map.of("local_gc_trigger_threshold_ratio", 0.5)));
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids.slice(3, 4));
    Task load = store.load(memory.transfer());
    reads.awaitHeld(1);
    // So much that every block has to go.
    Path filler = SmallSpace.file(directory, ids, 0).resolveSibling("filler");
    Files.write(filler, new byte[(int) (2 * BLOCKS * FILE)]);
    store.collector().makeRound();
    assertThat(names()).containsExactly(ids.hex(3));
    reads.end();
    TestStores.ended(load).requireOk();
    memory.check();
  }

  @Test
  void loadsTheRightBytesOfABlockThatAnotherProcessRemovesMeanwhile() throws Exception {
    BlockIds ids = filled(12);
    LocalFileStore store = stores.open(files, settings(1000, Map.of()));
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids.slice(3, 4));
    Task load = store.load(memory.transfer());
    reads.awaitHeld(1);
    Files.delete(SmallSpace.file(directory, ids, 3));
    reads.end();
    TestStores.ended(load).requireOk();
    memory.check();
    // The index learns of the removal by the load.
    assertThat(stores.load(store, ids.slice(3, 4)).outcome(0)).isEqualTo(ShardOutcome.MISSING);
    assertThat(store.lookup(ids).get(3)).isFalse();
  }
}

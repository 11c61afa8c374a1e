package ucm.store.file.eviction;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.ForwardingFileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.TestVolumes;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.volume.Volumes;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;

/** Without a capacity, files are told of loads afterwards, and not too often. */
final class BlockUsesTest {

  private static final BlockLayout LAYOUT = SmallSpace.LAYOUT;
  private static final long HOUR = TimeUnit.HOURS.toNanos(1);

  private final FaultyFiles files = new FaultyFiles();
  private final BlockIds ids = BlockIds.wrap(new long[] {1, 2, 3, 4, 5, 6, 7, 8});
  @TempDir private Path directory;

  @BeforeEach
  void dumpsBlocksThatWereUsedLongAgo() throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      stores.dump(stores.open(), ids).requireOk();
    }
    for (int i = 0; i < ids.size(); i++) {
      SmallSpace.usedAt(file(i), i);
    }
  }

  private Path file(int block) throws Exception {
    return SmallSpace.file(directory, ids, block);
  }

  @Test
  void tellsOfLoadsWhenTheyAreOverAndOfNothingElse() throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open();
      assertThat(stores.load(store, ids.slice(0, 2)).ok()).isTrue();
      assertThat(store.lookup(ids).cardinality()).isEqualTo(ids.size());
      assertThat(SmallSpace.usedAt(file(1))).as("while it is open").isEqualTo(1);
    }
    assertThat(SmallSpace.usedAt(file(0))).isGreaterThan(ids.size());
    assertThat(SmallSpace.usedAt(file(1))).isGreaterThan(ids.size());
    assertThat(SmallSpace.usedAt(file(2))).isEqualTo(2);
  }

  @Test
  void loadsWhereTheFilesCannotBeTold() throws Exception {
    files.failAll(FaultyFiles.Call.TOUCH, Errno.EROFS);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store = stores.open(files, System::nanoTime, Map.of());
      assertThat(stores.load(store, ids).ok()).isTrue();
      store.close();
      assertThat(stores.openFiles()).isEmpty();
    }
    assertThat(files.count(FaultyFiles.Call.TOUCH)).isEqualTo(ids.size());
    assertThat(SmallSpace.usedAt(file(3))).isEqualTo(3);
  }

  private final ManualClock clock = new ManualClock();
  private final AtomicLong wallClock = new AtomicLong();
  private final List<Long> told = new CopyOnWriteArrayList<>();

  /** Uses whose times are told to this test. */
  private BlockUses uses(BlockUses.Kind kind) {
    FileOperations listening =
        new ForwardingFileOperations(files) {
          @Override
          public boolean touch(NativePath path, long atNanos) {
            return told.add(atNanos);
          }
        };
    BlockPaths paths = new BlockPaths("Local", List.of(directory.toString()), 3);
    Volumes volumes = TestVolumes.of(listening, paths);
    return new BlockUses(listening, paths, kind, volumes, clock, wallClock::get, Long.MAX_VALUE);
  }

  @Test
  void tellsAFileAgainWhenAnHourHasPassed() {
    BlockUses uses = uses(BlockUses.Kind.LOADS);
    for (long at : new long[] {HOUR, HOUR + 1, 2 * HOUR - 1, 2 * HOUR, 2 * HOUR + 1}) {
      uses.record(ids, 1, at);
      uses.flush();
    }
    assertThat(told).containsExactly(HOUR, 2 * HOUR);
  }

  @Test
  void toRaiseBlocksInACircleEnds() {
    BlockUses uses = uses(BlockUses.Kind.ALL);
    uses.prompt(ids);
    uses.prompt(BlockIds.wrap(new long[] {7, 8, 1, 2}));
    uses.record(ids, 4, HOUR);
    uses.raise();
    assertThat(uses.isNew(1, 2)).isTrue();
  }

  @Test
  void aUseOfALeafRaisesAllBlocksBeforeIt() {
    BlockUses uses = uses(BlockUses.Kind.ALL);
    BlockIds prompt = BlockBytes.ids(5, 1 << 11);
    uses.prompt(prompt);
    uses.record(prompt.slice(2047, 2048), 1, HOUR);
    uses.flush();
    assertThat(told).hasSize(2048).doesNotHaveDuplicates().contains(HOUR, HOUR + 2047);
  }

  @Test
  void tellsOfTheLatestUseSinceItTold() {
    BlockUses uses = uses(BlockUses.Kind.LOADS);
    uses.record(ids, 1, HOUR);
    uses.record(ids, 1, HOUR + 5);
    uses.flush();
    assertThat(told).containsExactly(HOUR + 5);
  }

  private void pass(Duration time) {
    clock.advance(time);
    wallClock.addAndGet(time.toNanos());
  }

  @Test
  void tellsFilesTheRightTimeWhenTheClockIsSetAfterTheStart() {
    for (long setBy : new long[] {1_000_000 * HOUR, -3 * HOUR}) {
      told.clear();
      wallClock.set(10 * HOUR);
      BlockUses uses = uses(BlockUses.Kind.ALL);
      pass(Duration.ofHours(1));
      uses.found(ids, 1);
      uses.flush();
      assertThat(told).containsExactlyInAnyOrder(11 * HOUR, 11 * HOUR - 1);
      told.clear();
      wallClock.addAndGet(setBy);
      pass(Duration.ofHours(2));
      uses.found(ids.slice(2, 3), 0);
      uses.flush();
      assertThat(told)
          .as("one of now, and those of before put right")
          .containsExactlyInAnyOrder(setBy + 13 * HOUR, setBy + 11 * HOUR, setBy + 11 * HOUR - 1);
      told.clear();
      uses.flush();
      assertThat(told).isEmpty();
    }
  }

  @Test
  void aClockThatIsSetByLessThanAMinuteHasNothingToldAgainAndChangesNoOrder() {
    BlockUses uses = uses(BlockUses.Kind.ALL);
    pass(Duration.ofHours(1));
    uses.prompt(ids);
    uses.found(ids.slice(0, 1), 0);
    uses.flush();
    pass(Duration.ofSeconds(1));
    wallClock.addAndGet(-TimeUnit.SECONDS.toNanos(59));
    uses.found(ids.slice(1, 2), 0);
    uses.flush();
    // The first again, as it comes before the second.
    long second = HOUR + TimeUnit.SECONDS.toNanos(1);
    assertThat(told).containsExactlyInAnyOrder(HOUR, second, second + 1);
  }
}

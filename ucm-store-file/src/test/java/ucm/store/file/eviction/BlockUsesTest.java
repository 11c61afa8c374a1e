package ucm.store.file.eviction;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
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
    return new BlockUses(listening, paths, kind, volumes, System::nanoTime, Long.MAX_VALUE);
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
}

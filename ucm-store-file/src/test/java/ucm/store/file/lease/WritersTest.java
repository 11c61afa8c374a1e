package ucm.store.file.lease;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.store.file.LocalFileStore;
import ucm.store.file.block.OpenBlocks;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;

/** How blocks come into a directory: shard by shard, from several writers, and with which traces. */
final class WritersTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1024, 4096, 32768);
  private static final int SHARDS = 8;

  WritersTest() {
    super(LAYOUT);
  }

  @Test
  void showsABlockOnlyWhenItsLastShardIsWrittenWhateverTheOrder() throws Exception {
    BlockIds ids = BlockBytes.ids(30, 5);
    LocalFileStore store = stores.open();
    List<Integer> order = new ArrayList<>(IntStream.range(0, SHARDS).boxed().toList());
    for (int round = 0; round < 5; round++) {
      Collections.shuffle(order, new Random(round));
      BlockIds id = ids.slice(round, round + 1);
      for (int shard : order) {
        assertThat(store.lookup(id).isEmpty()).as("before shard %d of %s", shard, order).isTrue();
        assertThat(stores.load(store, id).okCount()).isZero();
        stores.dumpShard(store, id, shard).requireOk();
      }
      assertThat(stores.load(store, id).ok()).isTrue();
    }
    assertThat(stores.temps()).isEmpty();
    // A load ends with its last shard, and the worker closes the file after that.
    store.close();
    assertThat(stores.openFiles()).isEmpty();
  }

  @Test
  void keepsTheBytesOfTwoWritersOfABlockApart() throws Exception {
    // Equal ids mean equal bytes; these two break that, so that a mixture would be seen.
    BlockIds ids = BlockBytes.ids(31, 64);
    LocalFileStore first = stores.open();
    LocalFileStore second = stores.open();
    Thread other = Thread.ofPlatform().start(() -> dumpLayers(second, ids, (byte) 2, 0));
    dumpLayers(first, ids, (byte) 1, 1);
    other.join();
    MemorySegment memory = Arena.ofAuto().allocate(ids.size() * LAYOUT.blockSize());
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    MemoryRegion region = MemoryRegion.host(memory);
    for (int i = 0; i < ids.size() * SHARDS; i++) {
      builder.shard(ids, i / SHARDS, i % SHARDS).piece(region, i * LAYOUT.shardSize());
    }
    TestStores.ended(first.load(builder.build())).requireOk();
    for (int i = 0; i < ids.size(); i++) {
      MemorySegment block = memory.asSlice(i * LAYOUT.blockSize(), LAYOUT.blockSize());
      byte writer = block.get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0);
      MemorySegment expected = Arena.ofAuto().allocate(LAYOUT.blockSize()).fill(writer);
      assertThat(block.mismatch(expected)).as("block %d of writer %d", i, writer).isEqualTo(-1);
      assertThat(writer).isIn((byte) 1, (byte) 2);
    }
    assertThat(first.flush(Duration.ZERO).failedCount()).isZero();
    assertThat(second.flush(Duration.ZERO).failedCount()).isZero();
    assertThat(stores.temps()).isEmpty();
  }

  private static void dumpLayers(LocalFileStore store, BlockIds ids, byte value, int start) {
    MemoryRegion region =
        MemoryRegion.host(Arena.ofAuto().allocate(LAYOUT.shardSize()).fill(value));
    for (int layer = 0; layer < SHARDS; layer++) {
      Transfer.Builder builder = Transfer.packed(LAYOUT);
      for (int i = 0; i < ids.size(); i++) {
        builder.shard(ids, i, (layer + start) % SHARDS).piece(region, 0);
      }
      try {
        TestStores.ended(store.dump(builder.build())).requireOk();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }
  }

  /** One larger than any memory; the folders it cannot name are found by a walk. */
  @Test
  void readsNoLeaseThatIsLargerThanAnyListOfFolders() throws Exception {
    String token = BlockPaths.PROBE + "1-0123456789abcdef";
    Path lease = Files.createDirectory(directory.resolve(".writers")).resolve(token);
    try (RandomAccessFile file = new RandomAccessFile(lease.toFile(), "rw")) {
      file.setLength(1L << 40);
    }
    BlockIds ids = BlockBytes.ids(33, 1);
    Path block = stores.file(ids, 0);
    Files.createDirectories(block.getParent());
    Path temp = block.resolveSibling(ids.hex(0) + "." + token + "-0000000001.tmp");
    Files.write(temp, new byte[9]);
    LocalFileStore store = stores.open();
    store.awaitSweep();
    assertThat(temp).doesNotExist();
    assertThat(lease).doesNotExist();
    stores.dump(store, ids).requireOk();
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  @Test
  void movesNothingForABlockThatIsThere() throws Exception {
    BlockIds ids = BlockBytes.ids(32, 3);
    LocalFileStore store = stores.open(files);
    stores.dump(store, ids).requireOk();
    int writes = files.count(Call.WRITE);
    stores.dump(store, ids).requireOk();
    stores.dumpShard(store, ids, 3).requireOk();
    assertThat(files.count(Call.WRITE)).isEqualTo(writes);
    assertThat(stores.metrics.count("local_dump_present_blocks")).isEqualTo(6);
    assertThat(store.flush(Duration.ZERO).ok()).isTrue();
  }

  @Test
  void keepsMoreBlocksUnfinishedThanFilesOpen() throws Exception {
    BlockIds ids = BlockBytes.ids(33, OpenBlocks.MAX_KEPT + 50);
    LocalFileStore store = stores.open();
    for (int shard = 0; shard < SHARDS; shard++) {
      stores.dumpShard(store, ids, shard).requireOk();
      assertThat(stores.openFiles().size()).isLessThan(OpenBlocks.MAX_KEPT + 30);
    }
    assertThat(store.flush(Duration.ZERO).ok()).isTrue();
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  @Test
  void waitsForTheVolumeAsConfigured() throws Exception {
    BlockIds whole = BlockBytes.ids(34, 2);
    BlockIds layered = BlockBytes.ids(35, 2);
    for (String durability : List.of("none", "fdatasync", "full")) {
      FaultyFiles files = new FaultyFiles();
      Path own = Files.createDirectory(directory.resolve(durability));
      try (TestStores stores = new TestStores(own, LAYOUT)) {
        LocalFileStore store = stores.open(files, Map.of("durability", durability));
        List<Call> calls = Collections.synchronizedList(new ArrayList<>());
        files.before(calls::add);
        stores.dump(store, whole).requireOk();
        for (int shard = 0; shard < SHARDS; shard++) {
          stores.dumpShard(store, layered, shard).requireOk();
        }
        assertThat(store.durable(whole).cardinality()).isEqualTo(2);
        boolean syncs = !durability.equals("none");
        assertThat(files.count(Call.SYNC_DATA)).isEqualTo(syncs ? 4 : 0);
        // Once for each block's folder, and once for the directory when a folder was made.
        assertThat(files.count(Call.SYNC_FOLDER)).isEqualTo(durability.equals("full") ? 8 : 0);
        // A file must never have the size of one of the original's, which is not checked.
        assertThat(files.count(Call.ALLOCATE)).isEqualTo(4);
        assertThat(calls.lastIndexOf(Call.RENAME)).isGreaterThan(calls.lastIndexOf(Call.SYNC_DATA));
      }
    }
  }

  @Test
  void spreadsBlocksOverDirectoriesAndKeepsThemPrivate() throws Exception {
    BlockIds ids = BlockBytes.ids(36, 60);
    List<String> directories =
        Stream.of("a", "b/deep", "c").map(name -> directory.resolve(name).toString()).toList();
    Map<String, Object> settings =
        Map.of("storage_backends", String.join(":", directories), "data_dir_shard_bytes", 1);
    LocalFileStore store = stores.open(settings);
    stores.dump(store, ids).requireOk();
    assertThat(stores.load(store, ids).ok()).isTrue();
    store.close();
    for (String directory : directories) {
      try (Stream<Path> all = Files.walk(Path.of(directory))) {
        List<Path> files = all.filter(Files::isRegularFile).toList();
        assertThat(files.size()).isGreaterThan(5);
        for (Path file : files) {
          assertThat(file.toString()).matches(".*/[0-9a-f]/[0-9a-f]{32}");
          assertThat(mode(file)).isEqualTo("rw-------");
          assertThat(mode(file.getParent())).isEqualTo("rwx------");
        }
      }
    }
  }

  private static String mode(Path path) throws java.io.IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  @Test
  void removesWhatADeadWriterLeftAndNothingOfALivingOne() throws Exception {
    BlockIds dead = BlockBytes.ids(37, 4);
    BlockIds alive = BlockBytes.ids(38, 4);
    Path lease;
    LocalFileStore living = stores.open();
    living.awaitSweep();
    stores.dumpShard(living, alive, 0).requireOk();
    lease = stores.in(".writers").getFirst();
    // A dead writer: its lease is not locked, its temporary files carry its token.
    String boot = Files.readString(Path.of("/proc/sys/kernel/random/boot_id")).substring(0, 8);
    String token = "dead-1-" + boot + "89abcdef";
    List<Path> orphans = new ArrayList<>();
    StringBuilder journal = new StringBuilder("../../etc\n");
    for (int i = 0; i < dead.size(); i++) {
      Path file = stores.file(dead, i);
      Files.createDirectories(file.getParent());
      orphans.add(Files.createFile(Path.of(file + "." + token + "-0000000000.tmp")));
      journal.append(file.getParent().getFileName()).append('\n');
    }
    Files.writeString(directory.resolve(".writers").resolve(token), journal + "ab");
    LocalFileStore second = stores.open();
    second.awaitSweep();
    assertThat(orphans).noneMatch(Files::exists);
    assertThat(stores.in(".writers")).containsExactly(lease);
    assertThat(stores.temps()).hasSize(alive.size());
    assertThat(stores.metrics.count("local_orphan_files")).isEqualTo(dead.size());
    for (int shard = 1; shard < SHARDS; shard++) {
      stores.dumpShard(living, alive, shard).requireOk();
    }
    assertThat(stores.load(second, alive).ok()).isTrue();
    living.close();
    assertThat(lease).doesNotExist();
  }

  @Test
  void findsTheFilesOfAWriterOfAnotherBootWithoutItsList() throws Exception {
    BlockIds ids = BlockBytes.ids(40, 4);
    String token = "dead-1-0000000089abcdef";
    for (int i = 0; i < ids.size(); i++) {
      Path file = file(ids, i);
      Files.createDirectories(file.getParent());
      Files.createFile(Path.of(file + "." + token + "-0000000000.tmp"));
    }
    Files.createFile(Files.createDirectory(directory.resolve(".writers")).resolve(token));
    // What is no folder has the name of one.
    Files.createFile(directory.resolve("fff"));
    LocalFileStore store = stores.open();
    store.awaitSweep();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.in(".writers")).isEmpty();
    assertThat(stores.metrics.count("local_orphan_files")).isEqualTo(ids.size());
  }

  private Path file(BlockIds ids, int i) {
    return directory.resolve(ids.hex(i).substring(0, 3)).resolve(ids.hex(i));
  }

  @Test
  void leavesItsLeaseToTheNextStartWhenAFileCannotBeRemoved() throws Exception {
    BlockIds ids = BlockBytes.ids(41, 3);
    LocalFileStore store = stores.open(files);
    stores.dumpShard(store, ids, 0).requireOk();
    files.before(
        call -> {
          if (call == Call.REMOVE) {
            throw new FileException("unlink", "a file", Errno.EIO);
          }
        });
    store.close();
    assertThat(stores.temps()).hasSize(ids.size());
    assertThat(stores.in(".writers")).hasSize(1);
    assertThat(stores.openFiles()).as("the lease is not locked any more").isEmpty();
    stores.open().awaitSweep();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.in(".writers")).isEmpty();
  }

  @Test
  void leavesItsLeaseWhenItCannotTellWhetherAFileWasCreated() throws Exception {
    BlockIds ids = BlockBytes.ids(42, 4);
    LocalFileStore store = stores.open(files);
    stores.dump(store, ids.slice(0, 2)).requireOk();
    files.createUnanswered();
    files.failAll(Call.REMOVE, Errno.EIO);
    assertThat(stores.dumpShard(store, ids.slice(2, 4), 0).okCount()).isZero();
    files.heal();
    store.close();
    assertThat(stores.temps()).isNotEmpty();
    assertThat(stores.in(".writers")).hasSize(1);
    LocalFileStore next = stores.open();
    next.awaitSweep();
    assertThat(stores.temps()).isEmpty();
    assertThat(stores.load(next, ids.slice(0, 2)).ok()).isTrue();
  }

  @Test
  void leavesNoTraceWhenItOnlyReads() throws Exception {
    LocalFileStore store = stores.open();
    assertThat(stores.load(store, BlockBytes.ids(39, 5)).okCount()).isZero();
    store.close();
    try (Stream<Path> all = Files.list(directory)) {
      assertThat(all).isEmpty();
    }
  }
}

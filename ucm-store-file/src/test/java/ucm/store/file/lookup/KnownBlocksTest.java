package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.Waiting;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.Folder;
import ucm.testkit.BlockBytes;

/** What a store knows without asking the disk, and how it learns that this is no longer so. */
final class KnownBlocksTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 1024, 4096);
  private static final Map<String, Object> EXCLUSIVE = Map.of("lookup_mode", "exclusive");

  private static final long FILE_BYTES = Folder.inUnits(new BlockFooter(LAYOUT).fileSize());

  private final BlockIds ids = BlockBytes.ids(70, 40);
  private final BlockIds unknown = BlockBytes.ids(71, 40);

  KnownBlocksTest() {
    super(LAYOUT);
  }

  /** Its sweep has ended: it asks for sizes as well, of the leases of writers. */
  private LocalFileStore open(Map<String, Object> more) throws InterruptedException {
    LocalFileStore store = stores.open(files, more);
    store.awaitSweep();
    return store;
  }

  private static BitSet first(int count) {
    BitSet bits = new BitSet();
    bits.set(0, count);
    return bits;
  }

  @ParameterizedTest
  @ValueSource(strings = {"shared", "exclusive"})
  void knowsWhatItDumpedAndWhatWasThereAtTheStart(String mode) throws Exception {
    stores.dump(stores.open(), ids.slice(0, 30)).requireOk();
    LocalFileStore store = open(Map.of("lookup_mode", mode));
    store.awaitScan();
    stores.dump(store, ids.slice(30, 40)).requireOk();
    int asked = files.count(Call.SIZE);
    assertThat(store.lookup(ids)).isEqualTo(first(40));
    assertThat(store.lookupPrefix(ids)).isEqualTo(39);
    assertThat(store.lookupKnown(ids)).isEqualTo(first(40));
    assertThat(files.count(Call.SIZE)).as("nothing asked of the disk").isEqualTo(asked);
    assertThat(stores.metrics.count("local_lookup_index_hit_blocks")).isEqualTo(80);
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(40);
    assertThat(stores.metrics.gauge("local_index_complete")).isEqualTo(1);
    assertThat(store.durable(ids)).isEqualTo(first(40));
    assertThat(files.count(Call.SIZE)).as("durable is asked of it").isEqualTo(asked + 40);
  }

  @Test
  void learnsFromLookupsAndLoads() throws Exception {
    LocalFileStore store = open(Map.of());
    store.awaitScan();
    stores.dump(stores.open(), ids).requireOk();
    int before = files.count(Call.SIZE);
    assertThat(store.lookupKnown(ids).isEmpty()).isTrue();
    assertThat(files.count(Call.SIZE)).isEqualTo(before);
    assertThat(store.lookup(ids.slice(0, 20)).cardinality()).isEqualTo(20);
    assertThat(store.lookupKnown(ids)).isEqualTo(first(20));
    assertThat(stores.load(store, ids.slice(20, 40)).ok()).isTrue();
    int asked = files.count(Call.SIZE);
    assertThat(store.lookupPrefix(ids)).isEqualTo(39);
    assertThat(files.count(Call.SIZE)).isEqualTo(asked);
  }

  @Test
  void takesUpOnlyBlocksAtTheStart() throws Exception {
    byte[] bare = new byte[(int) LAYOUT.blockSize()];
    stores.dump(stores.open(), ids.slice(0, 5)).requireOk();
    // One of the original, without a footer, counts where that is asked for.
    write(stores.file(ids, 5), bare);
    write(stores.file(ids, 6), new byte[bare.length - 1]);
    write(stores.file(ids, 7), new byte[0]);
    Files.createDirectories(stores.file(ids, 8));
    Files.createDirectories(stores.file(ids, 9).getParent());
    Files.createSymbolicLink(stores.file(ids, 9), stores.file(ids, 0));
    write(directory.resolve("zzz").resolve(ids.hex(10)), bare);
    write(directory.resolve(ids.hex(11)), bare);
    write(directory.resolve("data").resolve(ids.hex(12)), bare);
    write(directory.resolve(ids.hex(13).substring(0, 2)).resolve(ids.hex(13)), bare);
    write(directory.resolve(".quarantine").resolve(ids.hex(14)), bare);
    write(Path.of(stores.file(ids, 15) + ".tmp"), bare);
    write(Path.of(stores.file(ids, 16) + ".host-1-2-0000000001.tmp"), bare);
    String capitals = ids.hex(17).toUpperCase(Locale.ROOT);
    write(stores.file(ids, 17).resolveSibling(capitals + "Z"), bare);
    Files.createFile(directory.resolve("fff"));
    LocalFileStore store = open(EXCLUSIVE);
    store.awaitScan();
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(5);
    assertThat(store.lookup(ids)).isEqualTo(first(5));
    store.close();
    LocalFileStore accepting = open(Map.of("lookup_mode", "exclusive", "accept_unverified", true));
    accepting.awaitScan();
    assertThat(accepting.lookup(ids)).isEqualTo(first(6));
  }

  private static void write(Path file, byte[] bytes) throws Exception {
    Files.createDirectories(file.getParent());
    Files.write(file, bytes);
  }

  @Test
  void takesUpNoBlockOfAnotherDirectory() throws Exception {
    Path a = directory.resolve("a");
    Path b = directory.resolve("b");
    Map<String, Object> both = Map.of("storage_backends", List.of(a.toString(), b.toString()));
    stores.dump(stores.open(both), ids).requireOk();
    List<Path> inA = SmallSpace.blocks(a);
    List<Path> inB = SmallSpace.blocks(b);
    assertThat(inA).isNotEmpty();
    assertThat(inB).isNotEmpty();
    for (Path file : inA) {
      Path wrong = b.resolve(a.relativize(file));
      Files.createDirectories(wrong.getParent());
      Files.move(file, wrong);
    }
    LocalFileStore store = open(both);
    store.awaitScan();
    assertThat(store.lookup(ids).cardinality()).isEqualTo(inB.size());
  }

  @ParameterizedTest
  @ValueSource(strings = {"shared", "exclusive"})
  void missesAtLoadWhatWasRemoved(String mode) throws Exception {
    LocalFileStore store = open(Map.of("lookup_mode", mode));
    store.awaitScan();
    stores.dump(store, ids).requireOk();
    Files.delete(stores.file(ids, 3));
    assertThat(store.durable(ids).get(3)).isFalse();
    assertThat(store.lookupPrefix(ids)).as("the disk was just asked").isEqualTo(2);
    Files.delete(stores.file(ids, 2));
    assertThat(store.lookupPrefix(ids)).as("not known yet").isEqualTo(2);
    TransferResult result = stores.load(store, ids);
    assertThat(result.cause()).as("no error").isNull();
    int shards = LAYOUT.shardCount();
    assertThat(result.outcome(2 * shards)).isEqualTo(ShardOutcome.MISSING);
    assertThat(result.okCount()).isEqualTo(38 * shards);
    assertThat(store.lookupPrefix(ids)).isEqualTo(1);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(38);
    stores.dump(store, ids).requireOk();
    assertThat(store.lookupPrefix(ids)).isEqualTo(39);
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"shared", "exclusive"})
  void writesAgainWhatWasRemoved(String mode) throws Exception {
    LocalFileStore store = open(Map.of("lookup_mode", mode));
    store.awaitScan();
    stores.dump(store, ids).requireOk();
    for (int i = 0; i < ids.size(); i++) {
      Files.delete(stores.file(ids, i));
    }
    stores.dump(store, ids).requireOk();
    assertThat(store.durable(ids)).isEqualTo(first(40));
    assertThat(stores.load(store, ids).ok()).isTrue();
  }

  @Test
  void takesAFailedDumpOfARemovedBlockForAbsent() throws Exception {
    LocalFileStore store = open(Map.of("local_data_trans_concurrency", 1));
    stores.dump(store, ids.slice(0, 1)).requireOk();
    Files.delete(stores.file(ids, 0));
    files.fail(Call.WRITE, files.count(Call.WRITE), Errno.ENOSPC);
    TransferResult result = stores.dumpShard(store, ids.slice(0, 1), 0);
    assertThat(result.ok()).isFalse();
    assertThat(store.lookupPrefix(ids)).isEqualTo(-1);
  }

  @Test
  void seesWhatOthersWriteUnlessExclusive() throws Exception {
    LocalFileStore writer = stores.open();
    LocalFileStore shared = stores.open();
    LocalFileStore exclusive = open(EXCLUSIVE);
    shared.awaitScan();
    exclusive.awaitScan();
    stores.dump(writer, ids).requireOk();
    assertThat(shared.lookup(ids)).isEqualTo(first(40));
    int asked = files.count(Call.SIZE);
    assertThat(exclusive.lookup(ids)).isEqualTo(first(0));
    assertThat(exclusive.lookupPrefix(ids)).isEqualTo(-1);
    assertThat(files.count(Call.SIZE)).as("nothing asked of the disk").isEqualTo(asked);
    assertThat(stores.load(exclusive, ids.slice(0, 10)).ok()).as("loads ask the disk").isTrue();
    assertThat(exclusive.lookupPrefix(ids)).isEqualTo(9);
  }

  @Test
  void asksTheDiskUntilTheScanHasEnded() throws Exception {
    FaultyFiles.Hang scan = files.hold(Call.LIST, "ucm-local-scan-0");
    LocalFileStore writer = stores.open();
    writer.awaitScan();
    stores.dump(writer, ids).requireOk();
    LocalFileStore store = open(EXCLUSIVE);
    scan.awaitHeld(1);
    int asked;
    try (scan) {
      assertThat(store.lookup(ids)).as("while the scan hangs").isEqualTo(first(40));
      asked = files.count(Call.SIZE);
      assertThat(store.lookup(unknown)).isEqualTo(first(0));
      assertThat(files.count(Call.SIZE)).isEqualTo(asked + 40);
    }
    store.awaitScan();
    asked = files.count(Call.SIZE);
    assertThat(store.lookup(unknown)).isEqualTo(first(0));
    assertThat(files.count(Call.SIZE)).isEqualTo(asked);
    assertThat(stores.metrics.count("local_index_scanned_files")).isEqualTo(40);
  }

  @Test
  void knowsBlocksAndSpaceByOneLookAtEachFile() throws Exception {
    Map<String, Object> settings = new HashMap<>(EXCLUSIVE);
    settings.put("data_dir_shard_bytes", 0);
    stores.dump(stores.open(settings), ids).requireOk();
    settings.put("local_capacity_gb", 1);
    settings.put("local_gc_check_interval_sec", 86_400);
    LocalFileStore store = open(settings);
    store.awaitScan();
    assertThat(stores.metrics.gauge("local_index_complete")).isEqualTo(1);
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(40);
    assertThat(stores.metrics.gauge("local_used_bytes")).isEqualTo(40.0 * FILE_BYTES);
    assertThat(files.count(Call.SIZE) + files.count(Call.STAT)).isBetween(40, 60);
  }

  @ParameterizedTest
  @ValueSource(strings = {"LIST", "SIZE"})
  void trustsNoScanThatFailed(Call failing) throws Exception {
    stores.dump(stores.open(), ids.slice(0, 39)).requireOk();
    files.before(
        call -> {
          if (call == failing && Thread.currentThread().getName().equals("ucm-local-scan-0")) {
            throw new FileException(failing.name(), "the directory", Errno.EIO);
          }
        });
    LocalFileStore store = open(EXCLUSIVE);
    store.awaitScan();
    files.before(call -> {});
    assertThat(store.lookup(ids)).isEqualTo(first(39));
    assertThat(stores.metrics.gauge("local_index_complete")).isZero();
    stores.dump(stores.open(), ids).requireOk();
    assertThat(store.lookupPrefix(ids)).as("the disk is asked").isEqualTo(39);
  }

  @ParameterizedTest
  @ValueSource(strings = {"shared", "exclusive"})
  void findsEverythingThoughTheIndexIsFull(String mode) throws Exception {
    stores.dump(stores.open(), ids).requireOk();
    LocalFileStore store = open(Map.of("lookup_mode", mode, "local_index_max_blocks", 10));
    store.awaitScan();
    assertThat(store.lookup(ids)).isEqualTo(first(40));
    stores.dump(store, unknown).requireOk();
    assertThat(store.lookup(unknown)).isEqualTo(first(40));
    assertThat(store.lookupPrefix(ids)).isEqualTo(39);
    assertThat(store.lookup(BlockBytes.ids(72, 5))).isEqualTo(first(0));
    assertThat(stores.metrics.gauge("local_index_blocks")).isEqualTo(10);
    assertThat(stores.metrics.gauge("local_index_forgotten_blocks")).isPositive();
  }

  @Test
  void closesWhileTheScanIsUnderWay() throws Exception {
    stores.dump(stores.open(), ids).requireOk();
    FaultyFiles.Hang scan = files.hold(Call.SIZE, "ucm-local-scan-0");
    LocalFileStore store = open(Map.of());
    scan.awaitHeld(1);
    int asked = files.count(Call.SIZE);
    Thread closer = Thread.ofPlatform().start(store::close);
    Waiting.until(
        "close waits for the scan",
        () ->
            Waiting.threads("ucm-local-close-").stream()
                .anyMatch(thread -> thread.getState() == Thread.State.WAITING));
    scan.end();
    closer.join();
    assertThat(files.count(Call.SIZE)).as("no further file").isLessThanOrEqualTo(asked + 1);
  }

  /** Two stores dump, load and look up, and files are removed; whatever loads is right. */
  @Test
  void loadsOnlyRightBytesWhileBlocksComeAndGo() throws Exception {
    LocalFileStore one = stores.open(Map.of("local_index_max_blocks", 30));
    LocalFileStore two = stores.open();
    List<Callable<Boolean>> work = new ArrayList<>();
    for (LocalFileStore store : List.of(one, two)) {
      work.add(() -> dumpMany(store));
      work.add(() -> loadMany(store));
    }
    work.add(this::removeMany);
    try (ExecutorService pool = Executors.newFixedThreadPool(work.size())) {
      for (Future<Boolean> done : pool.invokeAll(work)) {
        assertThat(done.get()).isTrue();
      }
    }
    for (LocalFileStore store : List.of(one, two)) {
      stores.dump(store, ids).requireOk();
      assertThat(stores.load(store, ids).ok()).isTrue();
      assertThat(store.lookup(ids)).isEqualTo(first(40));
    }
  }

  private boolean dumpMany(LocalFileStore store) throws Exception {
    for (int round = 0; round < 60; round++) {
      stores.dump(store, ids).requireOk();
    }
    return true;
  }

  private boolean loadMany(LocalFileStore store) throws Exception {
    for (int round = 0; round < 120; round++) {
      TransferResult result = stores.load(store, ids);
      assertThat(result.cause()).as("a removed block is no error").isNull();
      assertThat(store.lookupPrefix(ids)).isBetween(-1, 39);
      assertThat(store.lookup(unknown)).isEqualTo(first(0));
    }
    return true;
  }

  private boolean removeMany() throws Exception {
    for (int round = 0; round < 60; round++) {
      for (int i = 0; i < ids.size(); i++) {
        Files.deleteIfExists(stores.file(ids, i));
      }
    }
    return true;
  }
}

package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.DirectSupport;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.TestStores;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * Every system call of a store's life fails once with each error. What failed is no hit; what is a hit
 * is right; no temporary file, descriptor or lease stays.
 */
final class FaultTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1000, 3000, 9000);
  private static final Map<String, Object> FULL =
      Map.of("durability", "full", "local_data_trans_concurrency", 1);
  private static final Map<String, Object> DIRECT =
      Map.of("durability", "full", "local_data_trans_concurrency", 1, "io_direct", true);
  private static final Map<String, Object> ONE_THREAD = Map.of("local_data_trans_concurrency", 1);

  @TempDir private Path parent;

  private final BlockIds whole = BlockBytes.ids(1, 3);
  private final BlockIds layered = BlockBytes.ids(2, 2);

  @ParameterizedTest
  @ValueSource(
      ints = {Errno.EIO, Errno.ENOSPC, Errno.EDQUOT, Errno.ESTALE, Errno.EROFS, Errno.EMFILE})
  void survivesEachCallFailingOnce(int errno) throws Exception {
    failEachCall(errno, FULL);
  }

  @Test
  void survivesEachCallFailingOnceWithDirectIo() throws Exception {
    DirectSupport.require(parent);
    failEachCall(Errno.EINVAL, DIRECT);
  }

  private void failEachCall(int errno, Map<String, Object> settings) throws Exception {
    FaultyFiles counting = new FaultyFiles();
    live(counting, settings, "counted");
    for (Call call : Call.values()) {
      for (int nth = 0; nth < counting.count(call); nth++) {
        FaultyFiles files = new FaultyFiles();
        files.fail(call, nth, errno);
        live(files, settings, errno + "-" + call + "-" + nth);
      }
    }
    assertThat(counting.count(Call.WRITE)).as("calls were counted").isGreaterThan(5);
  }

  /** Opens, dumps, looks up, loads and closes; then looks at what is left. */
  private void live(FaultyFiles files, Map<String, Object> settings, String name) throws Exception {
    Path directory = Files.createDirectory(parent.resolve(name));
    Set<String> failed = new HashSet<>();
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      LocalFileStore store;
      try {
        store = stores.open(files, System::nanoTime, settings);
      } catch (StoreException e) {
        assertThat(stores.openFiles()).isEmpty();
        return;
      }
      store.awaitSweep();
      dumpWhole(store, failed);
      for (int shard = 2; shard >= 0; shard--) {
        note(stores.dumpShard(store, layered, shard), failed);
      }
      FlushResult flushed = store.flush(Duration.ZERO);
      noteAll(flushed.failedBlocks(), failed);
      assertThat(flushed.failedBlocks().size()).isEqualTo((int) flushed.failedCount());
      requireAbsent(store, failed);
      stores.load(store, whole);
      stores.load(store, layered);
      requireAbsent(store, failed);
      store.close();
      assertThat(stores.openFiles()).as("open files, %s", name).isEmpty();

      LocalFileStore again = stores.open(ONE_THREAD);
      again.awaitSweep();
      assertThat(stores.temps()).as("temporary files, %s", name).isEmpty();
      requireAbsent(again, failed);
      stores.load(again, whole);
      stores.load(again, layered);
      stores.dump(again, whole).requireOk();
      stores.dump(again, layered).requireOk();
      assertThat(stores.load(again, whole).ok()).isTrue();
      assertThat(stores.load(again, layered).ok()).isTrue();
      again.close();
      assertThat(stores.openFiles()).isEmpty();
      assertThat(stores.in(".writers")).as("leases, %s", name).isEmpty();
    }
  }

  private void dumpWhole(LocalFileStore store, Set<String> failed) throws InterruptedException {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, whole).fill();
    note(TestStores.ended(store.dump(memory.transfer())), failed);
  }

  private static void note(TransferResult result, Set<String> failed) {
    noteAll(result.failedBlocks(), failed);
    assertThat(result.ok() || result.cause() != null).as("a failed dump has a cause").isTrue();
  }

  private static void noteAll(BlockIds ids, Set<String> failed) {
    for (int i = 0; i < ids.size(); i++) {
      failed.add(ids.hex(i));
    }
  }

  private static void requireAbsent(LocalFileStore store, Set<String> failed) {
    BlockIds ids = BlockIds.ofHex(List.copyOf(failed));
    assertThat(store.lookup(ids)).isEqualTo(new BitSet());
    assertThat(store.durable(ids)).isEqualTo(new BitSet());
  }

  @Test
  void goesOnWhereReadsAndWritesFallShort() throws Exception {
    FaultyFiles files = new FaultyFiles();
    files.fallShort();
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = stores.open(files, System::nanoTime, Map.of());
      stores.dump(store, whole).requireOk();
      for (int shard = 2; shard >= 0; shard--) {
        stores.dumpShard(store, layered, shard).requireOk();
      }
      assertThat(stores.load(store, whole).ok()).isTrue();
      assertThat(stores.load(store, layered).ok()).isTrue();
      store.close();
      LocalFileStore again = stores.open();
      assertThat(stores.load(again, whole).ok()).isTrue();
      assertThat(stores.load(again, layered).ok()).isTrue();
    }
  }

  @Test
  void tellsWhichBlockFailedAndWhy() throws Exception {
    FaultyFiles files = new FaultyFiles();
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = stores.open(files, System::nanoTime, FULL);
      // The lease's journal is the first write; one step of 9,000 bytes is the second.
      files.fail(Call.WRITE, 1, Errno.ENOSPC);
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, whole).fill();
      TransferResult result = TestStores.ended(store.dump(memory.transfer()));
      assertThat(result.failedBlocks()).isEqualTo(whole.slice(0, 1));
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.FAILED);
      assertThat(result.cause()).hasMessageContaining("ENOSPC (No space left on device)");
      assertThat(stores.metrics.count("local_dump_failed_blocks")).isEqualTo(1);
      FlushResult flushed = store.flush(Duration.ZERO);
      assertThat(flushed.failedBlocks()).isEqualTo(whole.slice(0, 1));
      assertThat(flushed.cause()).hasMessageContaining("ENOSPC");
      assertThat(store.flush(Duration.ZERO).ok()).as("told once").isTrue();
    }
  }

  @Test
  void takesWhatItCannotLookUpForAbsent() throws Exception {
    FaultyFiles files = new FaultyFiles();
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      Map<String, Object> inOrder =
          Map.of(
              "local_index_max_blocks", 0,
              "local_lookup_concurrency", 1,
              "store_health.enabled", false);
      LocalFileStore store = stores.open(files, System::nanoTime, inOrder);
      stores.dump(store, whole).requireOk();
      files.fail(Call.SIZE, files.count(Call.SIZE) + 1, Errno.EIO);
      BitSet found = store.lookup(whole);
      assertThat(found.get(0)).isTrue();
      assertThat(found.get(1)).isFalse();
      assertThat(found.get(2)).isTrue();
      files.fail(Call.SIZE, files.count(Call.SIZE) + 1, Errno.EIO);
      assertThat(store.lookupPrefix(whole)).isZero();
      assertThat(stores.metrics.count("local_lookup_errors")).isEqualTo(2);
    }
  }

  @Test
  void takesAFileThatTheServerForgotForMissing() throws Exception {
    FaultyFiles files = new FaultyFiles();
    try (TestStores stores = new TestStores(parent, LAYOUT)) {
      LocalFileStore store = stores.open(files, System::nanoTime, FULL);
      stores.dump(store, whole).requireOk();
      files.fail(Call.READ, files.count(Call.READ), Errno.ESTALE);
      TransferResult result = stores.load(store, whole.slice(0, 1));
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
      assertThat(result.cause()).isNull();
    }
  }
}

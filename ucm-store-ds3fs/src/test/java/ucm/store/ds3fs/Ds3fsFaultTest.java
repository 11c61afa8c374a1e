package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.testkit.BlockBytes;

/**
 * Every call of USRBIO in a store's life fails once. What failed is no hit; what is a hit is right; no
 * file being written, registration, ring or memory stays.
 */
final class Ds3fsFaultTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1000, 3000, 9000);

  @TempDir private Path mount;

  private final BlockIds whole = BlockBytes.ids(1, 3);
  private final BlockIds layered = BlockBytes.ids(2, 2);

  @ParameterizedTest
  @ValueSource(
      strings = {
        "read",
        "write",
        "prep_io",
        "submit_ios",
        "wait_for_ios",
        "reg_fd",
        "iorcreate",
        "iovcreate"
      })
  void survivesEachCallFailingOnce(String call) throws Exception {
    mount = mount.toRealPath();
    int nth = 1;
    boolean isReached = true;
    while (isReached && nth < 100) {
      isReached = live(call, nth, Errno.EIO, "" + nth);
      nth++;
    }
    assertThat(nth).as("calls of %s that failed", call).isBetween(3, 99);
  }

  @Test
  void survivesAFullFileSystem() throws Exception {
    mount = mount.toRealPath();
    assertThat(live("write", 1, Errno.ENOSPC, "full")).isTrue();
  }

  /** Opens, dumps, looks up, loads and closes; whether the call came and failed. */
  private boolean live(String call, int nth, int errno, String name) throws Exception {
    SimulatedHf3fs hf3fs = SimulatedHf3fs.load(mount);
    Map<String, Long> before = hf3fs.kept();
    Path directory = Files.createDirectory(mount.resolve(name));
    boolean failed;
    try (TestDs3fs stores = new TestDs3fs(directory, LAYOUT)) {
      hf3fs.fail(call, nth, 1, errno);
      failed = !work(stores);
    }
    assertThat(TestDs3fs.names(directory.resolve(Ds3fsFiles.TEMP_FOLDER)))
        .as("%s %d", call, nth)
        .isEmpty();
    hf3fs.requireNoMisuse();
    assertThat(hf3fs.kept()).as("%s %d", call, nth).isEqualTo(before);
    hf3fs.heal();
    try (TestDs3fs stores = new TestDs3fs(directory, LAYOUT)) {
      Store store = stores.open(Map.of());
      for (BlockIds ids : new BlockIds[] {whole, layered}) {
        BitSet present = store.lookup(ids);
        TransferResult loaded = stores.load(store, ids);
        for (int i = 0; i < ids.size(); i++) {
          boolean isLoaded = !loaded.failedShards().get(i * LAYOUT.shardCount());
          assertThat(isLoaded).as("block %d, %s %d", i, call, nth).isEqualTo(present.get(i));
        }
      }
      assertThat(stores.metrics.count("ds3fs_corrupt_blocks")).as("%s %d", call, nth).isZero();
    }
    return failed;
  }

  /** Whether all went well. */
  private boolean work(TestDs3fs stores) throws Exception {
    Store store;
    try {
      store = stores.open(Map.of("stream_number", 1, "store_health.enabled", false));
    } catch (StoreException e) {
      assertThat(e).hasMessageContaining("hf3fs_");
      return false;
    }
    boolean ok = stores.dump(store, whole).ok();
    for (int shard = 0; shard < LAYOUT.shardCount(); shard++) {
      ok &= stores.dumpShard(store, layered, shard).ok();
    }
    // What failed in part is given up, as its shards are not dumped again.
    store.flush(Duration.ZERO);
    for (int turn = 0; turn < 2; turn++) {
      BitSet present = store.lookup(whole);
      TransferResult loaded = stores.load(store, whole);
      ok &= loaded.ok();
      assertThat(present.cardinality()).isGreaterThanOrEqualTo(loaded.okCount() / 3);
      ok &= stores.loadShard(store, layered, turn).ok();
    }
    return ok;
  }
}

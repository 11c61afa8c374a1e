package ucm.store.file.space;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.DirectSupport;
import ucm.store.file.fixture.SmallMount;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Dumps to a real disk of a few MiB, until it is full and beyond. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
final class FullDiskTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(8192, 32_768, 131_072);
  private static final long DISK_BYTES = 12L << 20;
  private static final int BLOCKS = 160;
  private static final int AT_ONCE = 8;

  @TempDir private Path parent;

  private final ManualClock clock = new ManualClock();
  private final BlockIds ids = BlockBytes.ids(800, BLOCKS);

  /** A file system, how blocks are dumped, and the engine. */
  static Stream<List<String>> ways() {
    return Stream.of(
        List.of("tmpfs", "whole", ""),
        List.of("tmpfs", "layers", ""),
        List.of("ext4", "whole", ""),
        List.of("ext4", "layers", ""),
        List.of("ext4", "whole", "psync"),
        List.of("ext4", "layers", "aio"));
  }

  @ParameterizedTest
  @MethodSource("ways")
  void failsCleanlyWhenTheDiskIsFullAndGoesOnWhenThereIsRoom(List<String> way) throws Exception {
    try (SmallMount mount = mount(way.get(0));
        TestStores stores = new TestStores(mount.directory, LAYOUT)) {
      LocalFileStore store = stores.open(new LibcFileOperations(), clock, settings(way.get(2)));
      boolean whole = way.get(1).equals("whole");
      List<Integer> stored = new ArrayList<>();
      int failed = 0;
      for (int first = 0; first < BLOCKS; first += AT_ONCE) {
        BlockIds some = ids.slice(first, first + AT_ONCE);
        TransferResult result = whole ? dumpWhole(store, some) : dumpLayers(stores, store, some);
        for (int i = 0; i < AT_ONCE; i++) {
          boolean ok = store.lookup(some).get(i);
          failed += ok ? 0 : 1;
          if (ok) {
            stored.add(first + i);
          }
        }
        assertThat(result.ok() || result.cause() != null).isTrue();
        if (!result.ok()) {
          assertThat(result.cause()).hasMessageContaining("ENOSPC");
          assertThat(result.outcome(result.failedShards().nextSetBit(0)))
              .isEqualTo(ShardOutcome.FAILED);
        }
        assertThat(whole ? stores.temps() : List.of()).as("of failed dumps").isEmpty();
      }
      assertThat(stored).hasSizeBetween(30, BLOCKS - 60);
      // Shards that came after one that failed began their block again; the rest of it never comes.
      clock.advance(Duration.ofSeconds(30));
      FlushResult flushed = store.flush(Duration.ofSeconds(30));
      assertThat(flushed.pendingBlocks()).isZero();
      assertThat(flushed.failedCount()).as("told by flush").isEqualTo(failed);
      assertThat(stores.metrics.count("local_dump_failed_blocks")).isEqualTo(failed);
      assertThat(stores.metrics.count("local_health_trips"))
          .as("a full directory is not a failing one")
          .isZero();
      Waiting.until("files of blocks that were given up", () -> stores.temps().isEmpty());
      requireExactly(stores, store, stored);

      makeRoom(stores, store, stored);
      BlockIds fresh = BlockBytes.ids(801, AT_ONCE);
      if (whole) {
        dumpWhole(store, fresh).requireOk();
      } else {
        dumpLayers(stores, store, fresh).requireOk();
      }
      assertThat(stores.load(store, fresh).ok()).isTrue();
      store.close();
      assertThat(stores.temps()).isEmpty();
      assertThat(stores.openFiles()).isEmpty();

      LocalFileStore next = stores.open(settings(way.get(2)));
      assertThat(stores.load(next, fresh).ok()).isTrue();
      requireExactly(stores, next, stored);
      next.close();
    }
  }

  private void requireExactly(TestStores stores, LocalFileStore store, List<Integer> stored)
      throws InterruptedException {
    for (int i = 0; i < BLOCKS; i++) {
      boolean there = stored.contains(i);
      BlockIds id = ids.slice(i, i + 1);
      assertThat(store.lookup(id).get(0)).as("block %d", i).isEqualTo(there);
      // Compares all bytes of what is called good.
      assertThat(stores.load(store, id).ok()).as("block %d", i).isEqualTo(there);
    }
  }

  private void makeRoom(TestStores stores, LocalFileStore store, List<Integer> stored)
      throws Exception {
    for (int i = 0; i < 2 * AT_ONCE; i++) {
      int gone = stored.removeFirst();
      Files.delete(stores.file(ids, gone));
      // The index learns of it by a load that misses.
      stores.load(store, ids.slice(gone, gone + 1));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"whole", "layers"})
  void leavesTheFloorFreeForOthers(String how) throws Exception {
    long floor = DISK_BYTES / 3;
    try (SmallMount mount = mount("tmpfs");
        TestStores stores = new TestStores(mount.directory, LAYOUT)) {
      Map<String, Object> settings = settings("");
      settings.put("local_min_free_gb", (double) floor / SpaceLimit.GB);
      LocalFileStore store = stores.open(new LibcFileOperations(), clock, settings);
      int stored = 0;
      for (int first = 0; first < BLOCKS; first += AT_ONCE) {
        BlockIds some = ids.slice(first, first + AT_ONCE);
        TransferResult result =
            how.equals("whole") ? dumpWhole(store, some) : dumpLayers(stores, store, some);
        stored += store.lookup(some).cardinality();
        assertThat(mount.directory.toFile().getUsableSpace()).isGreaterThanOrEqualTo(floor);
        if (!result.ok()) {
          assertThat(result.outcome(result.failedShards().nextSetBit(0)))
              .isEqualTo(ShardOutcome.REFUSED);
          assertThat(result.cause()).hasMessageContaining("local_min_free_gb");
        }
      }
      assertThat(stored).isBetween(30, BLOCKS - 60);
      assertThat(stores.metrics.count("local_refused_blocks"))
          .isGreaterThanOrEqualTo(BLOCKS - stored);
      clock.advance(Duration.ofSeconds(30));
      assertThat(store.flush(Duration.ofSeconds(30)).failedCount()).isEqualTo(BLOCKS - stored);
      Waiting.until("files of blocks that were given up", () -> stores.temps().isEmpty());
      for (int i = 0; i < 2 * AT_ONCE; i++) {
        Files.delete(stores.file(ids, i));
      }
      dumpWhole(store, BlockBytes.ids(802, AT_ONCE)).requireOk();
      assertThat(mount.directory.toFile().getUsableSpace()).isGreaterThanOrEqualTo(floor);
    }
  }

  private SmallMount mount(String type) throws Exception {
    if (type.equals("tmpfs")) {
      return SmallMount.tmpfs(parent.resolve("small"), DISK_BYTES);
    }
    Path image = parent.resolve("image");
    SmallMount.makeExt4(image, DISK_BYTES);
    return SmallMount.ext4(parent.resolve("small"), image, "rw");
  }

  private Map<String, Object> settings(String engine) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("local_min_free_gb", 0);
    if (!engine.isEmpty()) {
      DirectSupport.require(parent.resolve("small"));
      settings.put("io_direct", true);
      settings.put("local_io_engine", engine);
    }
    return settings;
  }

  private static TransferResult dumpWhole(LocalFileStore store, BlockIds some) throws Exception {
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, some).fill();
    return TestStores.ended(store.dump(memory.transfer()));
  }

  /** Returns the first result that is not good, else the last. */
  private static TransferResult dumpLayers(TestStores stores, LocalFileStore store, BlockIds some)
      throws InterruptedException {
    TransferResult first = stores.dumpShard(store, some, LAYOUT.shardCount() - 1);
    for (int shard = LAYOUT.shardCount() - 2; shard >= 0; shard--) {
      TransferResult result = stores.dumpShard(store, some, shard);
      first = first.ok() ? result : first;
    }
    return first;
  }
}

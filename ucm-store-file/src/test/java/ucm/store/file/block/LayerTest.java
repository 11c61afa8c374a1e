package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;

/** Blocks that are loaded layer by layer, and their files that stay open meanwhile. */
final class LayerTest extends InOneDirectory {

  private static final int SHARDS = 8;
  private static final int SHARD_SIZE = 4096;
  private static final BlockLayout LAYOUT =
      BlockLayout.uniform(1024, SHARD_SIZE, (long) SHARDS * SHARD_SIZE);

  private LocalFileStore store;

  LayerTest() {
    super(LAYOUT);
  }

  @BeforeEach
  void dumpsByAnotherStore() throws Exception {
    // One worker, so that it is done with one task when the next one ends; and no breaker, which
    // two failures would trip.
    store =
        stores.open(
            files, clock, Map.of("local_data_trans_concurrency", 1, "store_health.enabled", false));
  }

  private BlockIds dumped(int seed, int count) throws InterruptedException {
    BlockIds ids = BlockBytes.ids(seed, count);
    stores.dump(stores.open(), ids).requireOk();
    return ids;
  }

  private long openBlocks(BlockIds ids) throws Exception {
    stores.loadShard(store, BlockBytes.ids(999, 1), 0);
    long open = 0;
    for (Path file : stores.openFiles()) {
      for (int i = 0; i < ids.size(); i++) {
        // The kernel says it when the file has no name any more.
        open += file.toString().contains(ids.hex(i)) ? 1 : 0;
      }
    }
    return open;
  }

  @Test
  void opensEachFileOnceForAllItsLayersAndClosesItWithTheLast() throws Exception {
    BlockIds ids = dumped(1, 5);
    for (int layer = 0; layer < SHARDS; layer++) {
      assertThat(stores.loadShard(store, ids, layer).ok()).isTrue();
      assertThat(openBlocks(ids)).isEqualTo(layer < SHARDS - 1 ? 5 : 0);
    }
    assertThat(files.count(Call.SIZE_OF_OPEN)).isEqualTo(5);
    assertThat(files.count(Call.READ)).as("a footer and the layers").isEqualTo(5 * (1 + SHARDS));
  }

  @Test
  void keepsNoFileOfABlockThatIsLoadedWhole() throws Exception {
    BlockIds ids = dumped(2, 5);
    assertThat(stores.load(store, ids).ok()).isTrue();
    assertThat(openBlocks(ids)).isZero();
  }

  @Test
  void closesFilesOfWhichNothingMoreIsReadForASecond() throws Exception {
    BlockIds ids = dumped(3, 5);
    stores.loadShard(store, ids, 0).requireOk();
    assertThat(openBlocks(ids)).isEqualTo(5);
    clock.advance(Duration.ofNanos(OpenBlocks.IDLE_NANOS - 1));
    store.flush(Duration.ZERO);
    assertThat(openBlocks(ids)).isEqualTo(5);
    clock.advance(Duration.ofNanos(1));
    store.flush(Duration.ZERO);
    Waiting.until("idle files to be closed", () -> openBlocks(ids) == 0);
    assertThat(stores.loadShard(store, ids, 1).ok()).isTrue();
  }

  @Test
  void keepsNoMoreFilesThanItsBoundAndClosesTheOldestFirst() throws Exception {
    BlockIds ids = dumped(4, OpenBlocks.MAX_KEPT + 40);
    for (int layer = 0; layer < 3; layer++) {
      assertThat(stores.loadShard(store, ids, layer).ok()).isTrue();
      assertThat(openBlocks(ids)).isEqualTo(OpenBlocks.MAX_KEPT);
    }
  }

  @Test
  void missesTheNextLayerOfABlockThatWasRemoved() throws Exception {
    BlockIds ids = dumped(5, 2);
    stores.loadShard(store, ids, 0).requireOk();
    Files.delete(stores.file(ids, 1));
    TransferResult result = stores.loadShard(store, ids, 1);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.OK);
    assertThat(result.outcome(1)).isEqualTo(ShardOutcome.MISSING);
    assertThat(openBlocks(ids)).isEqualTo(1);
  }

  @Test
  void readsTheNextLayerFromTheFileThatTookThePlaceOfAnother() throws Exception {
    BlockIds ids = dumped(7, 1);
    Path copy = Files.copy(stores.file(ids, 0), directory.resolve("copy"));
    stores.loadShard(store, ids, 0).requireOk();
    Files.move(copy, stores.file(ids, 0), StandardCopyOption.REPLACE_EXISTING);
    assertThat(stores.loadShard(store, ids, 1).ok()).isTrue();
    assertThat(files.count(Call.SIZE_OF_OPEN)).isEqualTo(2);
  }

  @Test
  void findsALayerThatWasDamagedAfterTheFirstWasRead() throws Exception {
    BlockIds ids = dumped(8, 1);
    stores.loadShard(store, ids, 0).requireOk();
    try (RandomAccessFile file = new RandomAccessFile(stores.file(ids, 0).toFile(), "rw")) {
      file.seek(SHARD_SIZE);
      int first = file.read();
      file.seek(SHARD_SIZE);
      file.write(first ^ 1);
    }
    assertThat(stores.loadShard(store, ids, 1).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(stores.in(".quarantine")).hasSize(1);
    assertThat(openBlocks(ids)).isZero();
    assertThat(stores.loadShard(store, ids, 2).outcome(0)).isEqualTo(ShardOutcome.MISSING);
  }

  @Test
  void findsThatTheFileWasCutAfterTheFirstLayerWasRead() throws Exception {
    BlockIds ids = dumped(9, 1);
    stores.loadShard(store, ids, 0).requireOk();
    try (FileChannel file = FileChannel.open(stores.file(ids, 0), StandardOpenOption.WRITE)) {
      file.truncate(3 * SHARD_SIZE);
    }
    assertThat(stores.loadShard(store, ids, 1).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(openBlocks(ids)).isZero();
  }

  @Test
  void keepsNoFileThatFails() throws Exception {
    BlockIds ids = dumped(10, 1);
    stores.loadShard(store, ids, 0).requireOk();
    for (Call call : new Call[] {Call.READ, Call.VERSION}) {
      files.fail(call, files.count(call), Errno.EIO);
      assertThat(stores.loadShard(store, ids, 1).outcome(0))
          .as("%s", call)
          .isEqualTo(ShardOutcome.FAILED);
      assertThat(openBlocks(ids)).isZero();
      assertThat(stores.loadShard(store, ids, 1).ok()).isTrue();
      assertThat(openBlocks(ids)).isEqualTo(1);
    }
  }

  @Test
  void loadsLayersOfAFileWithoutFooter() throws Exception {
    store.close();
    store = stores.open(files, Map.of("accept_unverified", true));
    BlockIds ids = dumped(11, 1);
    try (FileChannel file = FileChannel.open(stores.file(ids, 0), StandardOpenOption.WRITE)) {
      file.truncate(LAYOUT.blockSize());
    }
    for (int layer = 0; layer < SHARDS; layer++) {
      assertThat(stores.loadShard(store, ids, layer).ok()).isTrue();
    }
    assertThat(files.count(Call.OPEN_READ)).isEqualTo(1);
    assertThat(stores.metrics.count("local_unverified_load_shards")).isEqualTo(SHARDS);
    LocalFileStore strict = stores.open();
    for (int layer = 0; layer < SHARDS; layer++) {
      assertThat(stores.loadShard(strict, ids, layer).outcome(0)).isEqualTo(ShardOutcome.MISSING);
    }
    assertThat(stores.file(ids, 0)).as("left alone").hasSize(LAYOUT.blockSize());
    assertThat(stores.openFiles()).hasSizeLessThanOrEqualTo(1);
  }
}

package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.file.LocalFileStore;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.fixture.TestStores;
import ucm.store.file.format.BlockPaths;
import ucm.testkit.BlockBytes;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TransferMemory;

/** Files that are not what was written are never served, and taken out of the way. */
final class DamageTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1024, 4096, 8192);
  private static final int FILE_SIZE = 8192 + 4096;

  @TempDir private Path directory;

  private final BlockIds ids = BlockBytes.ids(11, 2);
  private TestStores stores;
  private LocalFileStore store;
  private byte[] good;

  @BeforeEach
  void dumpsABlock() throws Exception {
    stores = new TestStores(directory, LAYOUT);
    store = stores.open();
    stores.dump(store, ids.slice(0, 1)).requireOk();
    good = Files.readAllBytes(file());
    assertThat(good).hasSize(FILE_SIZE);
  }

  @AfterEach
  void leavesNoDescriptor() throws IOException {
    stores.close();
    assertThat(stores.openFiles()).isEmpty();
  }

  @Test
  void missesAThousandFlippedBits() throws Exception {
    Random random = new Random(20);
    int flips = 1000;
    for (int i = 0; i < flips; i++) {
      int bit = random.nextInt(8 * FILE_SIZE);
      byte[] damaged = good.clone();
      damaged[bit / 8] ^= (byte) (1 << bit % 8);
      Files.write(file(), damaged);
      TransferResult result = stores.load(store, ids.slice(0, 1));
      assertThat(result.ok()).as("bit %d flipped", bit).isFalse();
      int shard = Math.min(1, bit / 8 / 4096);
      assertThat(result.outcome(shard)).isEqualTo(ShardOutcome.CORRUPT);
      requireGone();
    }
    assertThat(stores.metrics.count("local_corrupt_blocks")).isEqualTo(flips);
    assertThat(stores.metrics.count("local_quarantined_blocks")).isEqualTo(flips);
    assertThat(stores.in(".quarantine")).hasSize(Quarantine.MAX_FILES);
    stores.dump(store, ids.slice(0, 1)).requireOk();
    assertThat(stores.load(store, ids.slice(0, 1)).ok()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4095, 4096, 8191, 8193, FILE_SIZE - 1, FILE_SIZE + 1, 2 * FILE_SIZE})
  void missesFilesOfAnotherSize(int size) throws Exception {
    Files.write(file(), Arrays.copyOf(good, size));
    assertThat(store.durable(ids).isEmpty()).isTrue();
    requireCorrupt();
    assertThat(stores.metrics.count("local_quarantined_blocks")).isEqualTo(1);
  }

  @Test
  void missesAFileWhoseFooterIsGone() throws Exception {
    byte[] damaged = good.clone();
    Arrays.fill(damaged, 8192, FILE_SIZE, (byte) 0);
    Files.write(file(), damaged);
    requireCorrupt();
  }

  @Test
  void missesTheFileOfAnotherBlock() throws Exception {
    Files.createDirectories(stores.file(ids, 1).getParent());
    Files.write(stores.file(ids, 1), good);
    TransferResult result = stores.load(store, ids.slice(1, 2));
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(Files.exists(stores.file(ids, 1))).isFalse();
    assertThat(stores.load(store, ids.slice(0, 1)).ok()).as("the right one").isTrue();
  }

  @Test
  void missesAFileOfAnotherLayout() throws Exception {
    Files.delete(file());
    BlockLayout other = BlockLayout.uniform(512, 4096, 8192);
    TestStores others = new TestStores(directory, other);
    others.dump(others.open(), ids.slice(0, 1)).requireOk();
    others.close();
    requireCorrupt();
  }

  @Test
  void missesAWholeFileOfASmallerBlockThatHasTheSizeOfABareOne() throws Exception {
    Files.delete(file());
    BlockLayout smaller = BlockLayout.uniform(4096, 4096, 4096);
    TestStores others = new TestStores(directory, smaller);
    others.dump(others.open(), ids.slice(0, 1)).requireOk();
    others.close();
    assertThat(Files.size(file())).isEqualTo(LAYOUT.blockSize());
    requireCorrupt();
  }

  @Test
  void leavesFoldersLinksAndPipesAlone() throws Exception {
    Path elsewhere = Files.write(directory.resolve("elsewhere"), good);
    Files.delete(file());
    Files.createSymbolicLink(file(), elsewhere);
    requireMissing();
    assertThat(Files.isSymbolicLink(file())).isTrue();
    Files.delete(file());
    Files.createDirectory(file());
    requireMissing();
    assertThat(Files.isDirectory(file())).isTrue();
    Files.delete(file());
    Process made = new ProcessBuilder("mkfifo", file().toString()).start();
    assertThat(made.waitFor()).isZero();
    requireMissing();
    Files.delete(file());
    Files.delete(file().getParent());
    Files.createFile(file().getParent());
    requireMissing();
  }

  @Test
  void checksSizeAndFooterEvenWithoutVerifying() throws Exception {
    store.close();
    store = stores.open(Map.of("verify", "off"));
    assertThat(stores.load(store, ids.slice(0, 1)).ok()).isTrue();
    byte[] damaged = good.clone();
    damaged[8192 + 100] ^= 1;
    Files.write(file(), damaged);
    requireCorrupt();
  }

  @Test
  void verifiesASampleWhenTold() throws Exception {
    store.close();
    store = stores.open(Map.of("verify", "sample", "local_data_trans_concurrency", 1));
    byte[] damaged = good.clone();
    damaged[5000] ^= 1;
    int corrupt = 0;
    for (int i = 0; i < 32; i++) {
      Files.write(file(), damaged);
      var memory =
          TransferMemory.ofBlocks(LAYOUT, TransferMemory.Placement.PACKED, ids.slice(0, 1));
      corrupt += TestStores.ended(store.load(memory.transfer())).ok() ? 0 : 1;
    }
    assertThat(corrupt).as("one group in 16").isEqualTo(2);
  }

  /** Cut in half and filled up with zeros to the size of a block, or another block's bytes. */
  @Test
  void servesNoFileWithoutAFooter() throws Exception {
    Path quarantine = directory.resolve(".quarantine");
    for (int i = 0; i < 1000; i++) {
      BlockIds one = BlockBytes.ids(1000 + i, 1);
      byte[] bare = Arrays.copyOf(good, (int) LAYOUT.blockSize());
      Arrays.fill(bare, i % 2 == 0 ? bare.length / 2 : bare.length, bare.length, (byte) 0);
      Files.createDirectories(stores.file(one, 0).getParent());
      Files.write(stores.file(one, 0), bare);
      assertThat(store.lookup(one).isEmpty()).isTrue();
      TransferResult result = stores.load(store, one);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
      assertThat(result.outcome(1)).isEqualTo(ShardOutcome.MISSING);
      assertThat(stores.file(one, 0)).as("left alone").hasBinaryContent(bare);
    }
    assertThat(quarantine).doesNotExist();
    BlockIds last = BlockBytes.ids(1999, 1);
    stores.dump(store, last).requireOk();
    assertThat(stores.load(store, last).ok()).as("stored in its place").isTrue();
  }

  @Test
  void acceptsFilesOfTheOriginalUnverifiedWhenTold() throws Exception {
    store.close();
    store = stores.open(Map.of("accept_unverified", true));
    Files.delete(file());
    MemorySegment bytes = Arena.ofAuto().allocate(LAYOUT.blockSize());
    for (int shard = 0; shard < 2; shard++) {
      BlockBytes.fill(bytes.asSlice(shard * 4096L, 4096), ids.high(0), ids.low(0), shard, 0);
    }
    byte[] payload = bytes.toArray(ValueLayout.JAVA_BYTE);
    Files.write(file(), payload);
    assertThat(store.lookup(ids).get(0)).isTrue();
    assertThat(stores.load(store, ids.slice(0, 1)).ok()).isTrue();
    assertThat(stores.metrics.count("local_unverified_load_shards")).isEqualTo(2);
    assertThat(Arrays.copyOf(good, payload.length))
        .as("the original would read ours, too")
        .isEqualTo(payload);
  }

  private Path file() {
    return stores.file(ids, 0);
  }

  private void requireCorrupt() throws Exception {
    TransferResult result = stores.load(store, ids.slice(0, 1));
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    assertThat(result.outcome(1)).isEqualTo(ShardOutcome.CORRUPT);
    requireGone();
  }

  private void requireGone() {
    assertThat(Files.exists(file())).isFalse();
    assertThat(store.lookup(ids).get(0)).isFalse();
    assertThat(store.lookupPrefix(ids)).isEqualTo(-1);
  }

  private void requireMissing() throws Exception {
    TransferResult result = stores.load(store, ids.slice(0, 1));
    assertThat(store.lookup(ids).isEmpty()).isTrue();
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
    assertThat(result.cause()).isNull();
    assertThat(stores.metrics.count("local_quarantined_blocks")).isZero();
  }

  /** As when several threads find the same file damaged. */
  @Test
  void countsAndKeepsSlotsForFilesThatAreThere() throws Exception {
    BlockPaths paths = new BlockPaths("Local", List.of(directory.toString()), 3);
    RecordingMetrics metrics = new RecordingMetrics();
    Quarantine quarantine =
        new Quarantine(new LibcFileOperations(), paths, new FileStoreMetrics(metrics));
    for (int i = 0; i <= Quarantine.MAX_FILES; i++) {
      quarantine.take(ids.high(1), ids.low(1), "it was never there");
    }
    assertThat(metrics.count("corrupt_blocks")).isZero();
    quarantine.take(ids.high(0), ids.low(0), "this one was");
    assertThat(metrics.count("corrupt_blocks")).isEqualTo(1);
    assertThat(stores.in(".quarantine")).hasSize(1);
    // It is the folder that is missing now, as a file is in its place, and a message must say so.
    Files.move(directory.resolve(".quarantine"), directory.resolve(".kept"));
    Files.createFile(directory.resolve(".quarantine"));
    Files.write(file(), good);
    quarantine.take(ids.high(0), ids.low(0), "it is there again");
    assertThat(metrics.count("corrupt_blocks")).isEqualTo(2);
    assertThat(metrics.count("quarantined_blocks")).isEqualTo(1);
  }
}

package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
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

/** What is particular to {@code io_direct: true}. */
final class DirectTest {

  private static final Map<String, Object> DIRECT = Map.of("io_direct", true);

  @TempDir private Path directory;

  @BeforeEach
  void skipsWhereTheFileSystemRefuses() {
    DirectSupport.require(directory);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 5, 15",
    "1000, 3000, 9000",
    "512, 4096, 16384",
    "4096, 8192, 32768",
    "4097, 8194, 24582",
    "700001, 1400002, 2800004",
    "32768, 2097152, 4194304"
  })
  void filesAreTheSameAsThroughThePageCache(long tensor, long shard, long block) throws Exception {
    compare(tensor, shard, block, DIRECT);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 5, 15",
    "1000, 3000, 9000",
    "4097, 8194, 24582",
    "700001, 1400002, 2800004",
    "32768, 2097152, 4194304",
    "12000000, 12000000, 12000000"
  })
  void filesOfAioAreTheSameToo(long tensor, long shard, long block) throws Exception {
    compare(tensor, shard, block, direct("aio"));
  }

  private void compare(long tensor, long shard, long block, Map<String, Object> settings)
      throws Exception {
    BlockLayout layout = BlockLayout.uniform(tensor, shard, block);
    BlockIds ids = BlockBytes.ids(3, 4);
    try (TestStores direct = new TestStores(directory.resolve("direct"), layout);
        TestStores cached = new TestStores(directory.resolve("cached"), layout)) {
      LocalFileStore store = direct.open(settings);
      LocalFileStore reference = cached.open();
      direct.dump(store, ids.slice(0, 2)).requireOk();
      cached.dump(reference, ids.slice(0, 2)).requireOk();
      for (int i = layout.shardCount() - 1; i >= 0; i--) {
        direct.dumpShard(store, ids.slice(2, 4), i).requireOk();
        cached.dumpShard(reference, ids.slice(2, 4), i).requireOk();
      }
      for (int i = 0; i < ids.size(); i++) {
        assertThat(direct.file(ids, i)).hasSameBinaryContentAs(cached.file(ids, i));
      }
      assertThat(direct.load(store, ids).ok()).isTrue();
      assertThat(direct.load(direct.open(), ids).ok()).as("read through the cache").isTrue();
      assertThat(cached.load(cached.open(settings), ids).ok()).as("read directly").isTrue();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"psync", "aio"})
  void writersOfShardsThatShareAPageDoNotHarmEachOther(String engine) throws Exception {
    BlockLayout layout = BlockLayout.uniform(1237, 1237, 1237 * 64);
    BlockIds ids = BlockBytes.ids(4, 8);
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open(direct(engine));
      TransferMemory[] memories = new TransferMemory[64];
      Task[] tasks = new Task[64];
      for (int shard = 0; shard < 64; shard++) {
        int[] shards = new int[ids.size()];
        Arrays.fill(shards, shard);
        memories[shard] = new TransferMemory(layout, Placement.PACKED, ids, shards).fill();
        tasks[shard] = store.dump(memories[shard].transfer());
      }
      for (Task task : tasks) {
        TestStores.ended(task).requireOk();
      }
      assertThat(stores.load(store, ids).ok()).isTrue();
      assertThat(stores.metrics.count("local_corrupt_blocks")).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"psync", "aio"})
  void storesEveryBlockOfMemoryThatIsNotAligned(String engine) throws Exception {
    BlockLayout layout = BlockLayout.uniform(8192, 8192, 8192);
    BlockIds ids = BlockBytes.ids(5, 256);
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open(direct(engine));
      MemorySegment all = Arena.global().allocate(256 * 8192 + 8, 4096).asSlice(8);
      for (long i = 0; i < all.byteSize(); i += Long.BYTES) {
        all.set(ValueLayout.JAVA_LONG, i, i * 0x9e3779b97f4a7c15L);
      }
      TestStores.ended(store.dump(packed(layout, ids, all))).requireOk();
      assertThat(store.lookup(ids).cardinality()).isEqualTo(256);
      for (int i = 0; i < 256; i++) {
        byte[] inFile = Files.readAllBytes(stores.file(ids, i));
        MemorySegment expected = all.asSlice(i * 8192L, 8192);
        assertThat(MemorySegment.ofArray(inFile).asSlice(0, 8192).mismatch(expected)).isEqualTo(-1);
      }
      MemorySegment back = Arena.global().allocate(256 * 8192 + 3, 4096).asSlice(3);
      TestStores.ended(store.load(packed(layout, ids, back))).requireOk();
      assertThat(back.mismatch(all)).isEqualTo(-1);
    }
  }

  private static Transfer packed(BlockLayout layout, BlockIds ids, MemorySegment memory) {
    MemoryRegion region = MemoryRegion.host(memory);
    Transfer.Builder builder = Transfer.packed(layout);
    for (int i = 0; i < ids.size(); i++) {
      builder.shard(ids, i, 0).piece(region, i * layout.shardSize());
    }
    return builder.build();
  }

  @ParameterizedTest
  @ValueSource(strings = {"psync", "aio"})
  void readsFilesOfTheOriginalWhereTheyAreAccepted(String engine) throws Exception {
    BlockLayout layout = BlockLayout.uniform(1000, 3000, 9000);
    BlockIds ids = BlockBytes.ids(6, 3);
    try (TestStores stores = new TestStores(directory, layout)) {
      Map<String, Object> settings = new HashMap<>(direct(engine));
      settings.put("accept_unverified", true);
      LocalFileStore store = stores.open(settings);
      stores.dump(store, ids).requireOk();
      for (int i = 0; i < ids.size(); i++) {
        byte[] bytes = Files.readAllBytes(stores.file(ids, i));
        Files.write(stores.file(ids, i), Arrays.copyOf(bytes, 9000));
      }
      assertThat(stores.load(store, ids).ok()).isTrue();
      assertThat(stores.metrics.count("local_unverified_load_shards")).isEqualTo(9);
    }
  }

  /** What follows a page that was cut off is read by the file's name, which is gone by then. */
  @ParameterizedTest
  @ValueSource(strings = {"psync", "aio"})
  void takesAFileThatShrinksAndVanishesMeanwhileForMissing(String engine) throws Exception {
    BlockLayout layout = BlockLayout.uniform(9000, 9000, 9000);
    BlockIds ids = BlockBytes.ids(9, 4);
    FaultyFiles files = new FaultyFiles();
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open(files, System::nanoTime, direct(engine));
      stores.dump(store, ids).requireOk();
      for (int i = 0; i < ids.size(); i++) {
        Path file = stores.file(ids, i);
        // Once the size is known, and by a number of bytes that is no page's.
        files.before(
            call -> {
              if (call == Call.SET_DIRECT) {
                shrink(file, 5000);
              } else if (call == Call.READ) {
                remove(file);
              }
            });
        TransferResult result = stores.load(store, ids.slice(i, i + 1));
        assertThat(result.outcome(0)).isEqualTo(ShardOutcome.MISSING);
      }
      files.before(call -> {});
      assertThat(store.volumes().get(0).refusal())
          .as("four of them, and the breaker is closed")
          .isNull();
      stores.dump(store, ids).requireOk();
      assertThat(stores.load(store, ids).ok()).isTrue();
    }
  }

  private static void shrink(Path file, long size) {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate(size);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void remove(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void goesOnWhereReadsAndWritesFallShort() throws Exception {
    BlockLayout layout = BlockLayout.uniform(33_000, 66_000, 198_000);
    BlockIds ids = BlockBytes.ids(7, 4);
    FaultyFiles files = new FaultyFiles();
    files.fallShortInPages();
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open(files, System::nanoTime, DIRECT);
      stores.dump(store, ids.slice(0, 2)).requireOk();
      for (int shard = 2; shard >= 0; shard--) {
        stores.dumpShard(store, ids.slice(2, 4), shard).requireOk();
      }
      assertThat(stores.load(store, ids).ok()).isTrue();
      assertThat(stores.load(stores.open(), ids).ok()).isTrue();
    }
  }

  private static Map<String, Object> direct(String engine) {
    return Map.of("io_direct", true, "local_io_engine", engine);
  }

  @Test
  void saysAtOpenThatTheFileSystemRefusesAndWhatToSet() throws Exception {
    FaultyFiles files = new FaultyFiles();
    files.fail(Call.SET_DIRECT, 0, Errno.EINVAL);
    Path refused = directory.resolve("refused");
    try (TestStores stores = new TestStores(refused, BlockLayout.uniform(4096, 4096, 4096))) {
      assertThatThrownBy(() -> stores.open(files, System::nanoTime, DIRECT))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("io_direct: true in " + refused)
          .hasMessageContaining("EINVAL")
          .hasMessageContaining("set io_direct: false")
          .hasMessageContaining("storage_backends");
      assertThat(stores.openFiles()).isEmpty();
      assertThat(names(refused)).as("no probe is left").isEmpty();
    }
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.map(path -> path.getFileName().toString()).toList();
    }
  }
}

package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.platform.memory.SharedFile;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.SharedVictim;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TestProcess;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** How segments come and go, and which are not used. */
@Timeout(180)
final class SharedSegmentTest {

  private static final BlockLayout LAYOUT = SharedPeerTest.LAYOUT;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String NAME = "segment";

  private final List<TestCache> open = new ArrayList<>();

  @AfterEach
  void closesAllAndLeavesNoSegment() throws IOException {
    open.forEach(TestCache::close);
    List<Path> left = Segments.all();
    for (Path path : left) {
      Files.delete(path);
    }
    assertThat(left).as("segments left over").isEmpty();
  }

  @Test
  void firstToLeaveLeavesTheSegmentToTheOthersAndTheLastRemovesIt() throws Exception {
    TestCache first = worker(NAME, 4);
    TestCache second = worker(NAME, 4);
    assertThat(Files.getPosixFilePermissions(Segments.path(NAME)))
        .isEqualTo(PosixFilePermissions.fromString("rw-------"));
    keep(first, BlockBytes.ids(1, 2));
    first.close();
    assertThat(Segments.path(NAME)).exists();
    requireLoads(second, BlockBytes.ids(1, 2));
    keep(second, BlockBytes.ids(2, 1));
    TestCache third = worker(NAME, 4);
    requireLoads(third, BlockBytes.ids(2, 1));
    second.close();
    third.close();
    assertThat(Segments.path(NAME)).doesNotExist();
  }

  @Test
  void liveSegmentOfAnotherConfigurationIsRefused() throws Exception {
    TestCache first = worker(NAME, 4);
    keep(first, BlockBytes.ids(1, 2));
    assertThatThrownBy(() -> worker(NAME, 5))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(Segments.path(NAME).toString())
        .hasMessageContaining("blocks in the buffer 4 there and 5 here")
        .hasMessageContaining("cache_buffer_capacity_gb")
        .hasMessageContaining("unique_id");
    BlockLayout other = BlockLayout.uniform(4096, 4096, 2 * 4096);
    assertThatThrownBy(() -> new TestCache(other, null, 0, Segments.settings(NAME, other, 4)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("other tensor sizes");
    requireLoads(first, BlockBytes.ids(1, 2));
  }

  @Test
  void remainsOfWorkersThatWereKilledAreRemovedByTheNextStart() throws Exception {
    for (String next : List.of(NAME, "another")) {
      try (TestProcess victim =
          new TestProcess(SharedVictim.class, "dump", Segments.id(NAME), "4")) {
        awaitDone(victim);
      }
      assertThat(Segments.path(NAME)).exists();
      TestCache cache = worker(next, 6);
      assertThat(cache.store.lookup(BlockBytes.ids(1, 4)).isEmpty()).isTrue();
      assertThat(cache.pool().inUse()).isZero();
      assertThat(Files.exists(Segments.path(NAME))).isEqualTo(next.equals(NAME));
      cache.close();
      assertThat(Segments.path(next)).doesNotExist();
    }
  }

  @Test
  void segmentThatItsMakerNeverFinishedIsRemoved() throws Exception {
    try (TestProcess victim = new TestProcess(SharedVictim.class, "make", Segments.id(NAME))) {
      awaitDone(victim);
    }
    assertThat(Files.size(Segments.path(NAME))).isEqualTo(1 << 20);
    keep(worker(NAME, 4), BlockBytes.ids(1, 1));
  }

  @ParameterizedTest
  @ValueSource(strings = {"magic", "version", "boot id", "ready", "size", "short"})
  void segmentOfAnotherKindIsRefusedWhileItIsUsedAndElseRemoved(String what) throws Exception {
    TestCache maker = worker(NAME, 4);
    byte[] bytes = Files.readAllBytes(Segments.path(NAME));
    maker.close();
    ByteBuffer header = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
    String found =
        switch (what) {
          case "magic" -> {
            header.putLong((int) SegmentLayout.MAGIC_AT, 1);
            yield "does not begin";
          }
          case "version" -> {
            header.putInt((int) SegmentLayout.VERSION_AT, 77);
            yield "version 77";
          }
          case "boot id" -> {
            header.putLong((int) SegmentLayout.BOOT_LOW_AT, 1);
            yield "machine was restarted";
          }
          case "ready" -> {
            header.putInt((int) SegmentLayout.READY_AT, 0);
            yield "never finished";
          }
          default -> "bytes";
        };
    int size = what.equals("short") ? 10 : bytes.length - (what.equals("size") ? 1 : 0);
    Path path = Segments.path(NAME);
    // Locked before it has its name: else another run of this test might remove it as remains.
    Path unnamed = Path.of(path + ".unnamed");
    Files.write(unnamed, Arrays.copyOf(bytes, size));
    Files.setPosixFilePermissions(unnamed, PosixFilePermissions.fromString("rw-------"));
    try (SharedFile user = Objects.requireNonNull(SharedFile.open(unnamed))) {
      assertThat(user.tryLock(SegmentLayout.OWNER_LOCK + 7)).isTrue();
      Path _ = Files.move(unnamed, path);
      assertThatThrownBy(() -> worker(NAME, 4))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining(path.toString())
          .hasMessageContaining(found);
      assertThat(path).exists();
    }
    TestCache next = worker(NAME, 4);
    assertThat(next.pool().inUse()).isZero();
    keep(next, BlockBytes.ids(1, 1));
    requireLoads(next, BlockBytes.ids(1, 1));
  }

  @Test
  void oldSegmentThatIsUsedIsNotRemoved() throws Exception {
    TestCache old = worker(NAME, 4);
    keep(old, BlockBytes.ids(1, 2));
    Instant then = Instant.now().minus(Duration.ofMinutes(11));
    Files.setLastModifiedTime(Segments.path(NAME), FileTime.from(then));
    worker("another", 4).close();
    assertThat(Segments.path(NAME)).exists();
    requireLoads(worker(NAME, 4), BlockBytes.ids(1, 2));
  }

  @Test
  void bufferThatDoesNotFitSaysWhatIsNeededAndWhatIsFree() {
    long tooMuch = (SegmentFolder.DEV_SHM.free() >> 30) + 1;
    assertThatThrownBy(() -> worker(Map.of("cache_buffer_capacity_gb", (double) tooMuch)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("needs " + tooMuch)
        .hasMessageContaining("GiB are free")
        .hasMessageContaining("/dev/shm")
        .hasMessageContaining("lower cache_buffer_capacity_gb");
    assertThat(Segments.path(NAME)).doesNotExist();
  }

  @Test
  void roomThatOthersTookFirstIsRefusedAndLeavesNoFile() throws Exception {
    long all = Files.getFileStore(SegmentFolder.DEV_SHM.path()).getTotalSpace();
    Path path = Segments.path(NAME);
    try (SharedFile file = SharedFile.create(path)) {
      assertThatThrownBy(
              () -> SharedSegment.takeRoom(SegmentFolder.DEV_SHM, file, all + (1L << 30)))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("GiB are free")
          .hasMessageContaining("lower cache_buffer_capacity_gb")
          .cause()
          .hasMessageContaining("posix_fallocate");
    }
    assertThat(path).doesNotExist();
  }

  @Test
  void takesAsManyWorkersAsThereArePlacesAndNoMore() throws Exception {
    for (int i = 0; i < SegmentLayout.OWNERS; i++) {
      worker(NAME, 4);
    }
    assertThatThrownBy(() -> worker(NAME, 4))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("32 workers share it already")
        .hasMessageContaining("share_buffer_enable")
        .hasMessageContaining("unique_id");
    keep(open.getFirst(), BlockBytes.ids(1, 1));
    requireLoads(open.getLast(), BlockBytes.ids(1, 1));
    open.get(7).close();
    requireLoads(worker(NAME, 4), BlockBytes.ids(1, 1));
  }

  @Test
  void waitsForThePlaceOfAWorkerThatDied() throws Exception {
    // It dies while a read fills its slots, so its place comes free only when that must be over.
    try (TestProcess victim = new TestProcess(SharedVictim.class, "load", Segments.id(NAME), "4")) {
      awaitDone(victim);
      for (int i = 1; i < SegmentLayout.OWNERS; i++) {
        worker(NAME, 4);
      }
    }
    keep(worker(NAME, 4), BlockBytes.ids(2, 1));
  }

  @Test
  void fileThatOthersMayWriteOrThatIsALinkIsNotUsed() throws Exception {
    Path path = Segments.path(NAME);
    Files.createFile(path);
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-rw-rw-"));
    assertThatThrownBy(() -> worker(NAME, 4))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("others may read or write it");
    assertThat(path).exists();
    Files.delete(path);
    Files.createSymbolicLink(path, Path.of("/dev/null"));
    assertThatThrownBy(() -> worker(NAME, 4))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(path.toString());
    Files.delete(path);
  }

  @Test
  void nameOfASegmentNeverLeadsOutOfItsFolder() {
    for (String id :
        List.of("../../etc/passwd", "/etc", "..", ".", "", "a/b", "a\0b", "ä".repeat(300))) {
      Path path = SegmentFolder.DEV_SHM.segment(id);
      assertThat(path.getParent()).as(id).isEqualTo(Path.of("/dev/shm"));
      assertThat(path.normalize()).isEqualTo(path);
      assertThat(path.getFileName().toString()).hasSizeLessThan(100).startsWith("ucm-");
    }
    assertThat(SegmentFolder.DEV_SHM.segment("a/b"))
        .isNotEqualTo(SegmentFolder.DEV_SHM.segment("a-b"));
  }

  private TestCache worker(String name, int slabs) {
    return worker(Segments.settings(name, LAYOUT, slabs));
  }

  private TestCache worker(Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>(Segments.settings(NAME, LAYOUT, 4));
    settings.putAll(more);
    TestCache cache = new TestCache(LAYOUT, null, 0, settings);
    open.add(cache);
    return cache;
  }

  private static void keep(TestCache cache, BlockIds ids) throws InterruptedException {
    cache.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
  }

  private static void requireLoads(TestCache cache, BlockIds ids) throws InterruptedException {
    TransferMemory memory = memory(ids);
    cache.store.load(memory.transfer()).await(PATIENCE).requireOk();
    memory.check();
  }

  private static void awaitDone(TestProcess process) throws IOException {
    String line = process.line();
    while (line != null && !line.equals("done")) {
      line = process.line();
    }
    assertThat(line).isEqualTo("done");
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }
}

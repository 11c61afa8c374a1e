package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Random;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.NamedFields.BlocksMessage;
import ucm.server.protocol.NamedFields.ChunksMessage;
import ucm.server.protocol.NamedFields.RegionMessage;

/** Blocks that the daemon moves between the files and memory which a worker has open. */
final class RegionBlocksTest extends WithDaemon {

  private static final int BYTES = 8192;
  private static final int CHUNKS = 32;

  private FileChannel file;
  private Path name;
  private MemorySegment memory;

  RegionBlocksTest() {
    super(16 * BYTES);
  }

  @BeforeEach
  void mapsMemory() throws Exception {
    name = Path.of("/dev/shm", "ucm-test-" + UUID.randomUUID());
    file =
        FileChannel.open(
            name, StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
    memory = file.map(FileChannel.MapMode.READ_WRITE, 0, BYTES * CHUNKS, Arena.ofAuto());
  }

  @AfterEach
  void removesIt() throws IOException {
    file.close();
    Files.deleteIfExists(name);
  }

  private TestClient worker() throws Exception {
    return worker("tier");
  }

  private TestClient worker(String engine) throws Exception {
    TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER);
    var _ = client.openNamed(engine, 1, daemon.yaml, BYTES, 4);
    return client;
  }

  private RegionMessage region() throws IOException {
    return new RegionMessage(
        descriptor(name),
        BYTES * CHUNKS,
        ((Number) Files.getAttribute(name, "unix:ino")).longValue());
  }

  /** The number by which this process has a file open. */
  private static int descriptor(Path path) throws IOException {
    try (DirectoryStream<Path> all = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
      for (Path one : all) {
        if (Files.isSymbolicLink(one) && Files.readSymbolicLink(one).equals(path)) {
          return Integer.parseInt(one.getFileName().toString());
        }
      }
    }
    throw new AssertionError(path + " is not open");
  }

  private static String open(TestClient client, RegionMessage region) throws Exception {
    FrameWriter open = client.begin(MessageType.OPEN_REGION).record(region);
    return new FrameReader(client.ask(open, MessageType.OPENED_REGION).body()).string();
  }

  private static BitSet move(TestClient client, int type, BlockIds ids, int... chunks)
      throws Exception {
    FrameWriter move = client.begin(type).record(new ChunksMessage(ids, chunks));
    return new FrameReader(client.ask(move, MessageType.MOVED).body())
        .record(BlocksMessage.class)
        .blocks();
  }

  private static BitSet find(TestClient client, BlockIds ids) throws Exception {
    FrameWriter find = client.begin(MessageType.FIND).ids(ids);
    return new FrameReader(client.ask(find, MessageType.FOUND_WHICH).body())
        .record(BlocksMessage.class)
        .blocks();
  }

  private static byte[] content(int block) {
    byte[] bytes = new byte[BYTES];
    new Random(block).nextBytes(bytes);
    return bytes;
  }

  private void fill(int chunk, byte[] bytes) {
    MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, (long) chunk * BYTES, bytes.length);
  }

  private byte[] chunk(int chunk) {
    return memory.asSlice((long) chunk * BYTES, BYTES).toArray(ValueLayout.JAVA_BYTE);
  }

  private static BitSet all(int count) {
    BitSet all = new BitSet();
    all.set(0, count);
    return all;
  }

  @Test
  void chunksAreStoredAndLoadedElsewhereAlsoByAnotherWorker() throws Exception {
    try (TestClient first = worker();
        TestClient second = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      var _ = second.openNamed("other", 1, daemon.yaml, BYTES, 4);
      // The name may go, as vLLM's does.
      RegionMessage region = region();
      Files.delete(name);
      assertThat(open(first, region)).isEmpty();
      assertThat(open(second, region)).isEmpty();
      IntStream.range(0, 8).forEach(i -> fill(2 * i, content(i)));
      int[] even = IntStream.range(0, 8).map(i -> 2 * i).toArray();
      assertThat(find(first, ids(0, 8))).isEqualTo(new BitSet());
      assertThat(move(first, MessageType.STORE_CHUNKS, ids(0, 8), even)).isEqualTo(all(8));
      assertThat(find(second, ids(0, 9))).isEqualTo(all(8));
      int[] last = IntStream.range(CHUNKS - 8, CHUNKS).toArray();
      assertThat(move(second, MessageType.LOAD_CHUNKS, ids(0, 8), last)).isEqualTo(all(8));
      for (int i = 0; i < 8; i++) {
        assertThat(chunk(CHUNKS - 8 + i)).isEqualTo(content(i));
        assertThat(chunk(2 * i)).isEqualTo(content(i));
      }
    }
  }

  @Test
  void afterAResetChunksOfBeforeAreNotFound() throws Exception {
    try (TestClient client = worker()) {
      assertThat(open(client, region())).isEmpty();
      fill(0, content(0));
      assertThat(move(client, MessageType.STORE_CHUNKS, ids(0, 1), 0)).isEqualTo(all(1));
      FrameWriter reset = client.begin(MessageType.RESET).string("second");
      var _ = client.ask(reset, MessageType.DONE);
      assertThat(find(client, ids(0, 1))).isEqualTo(new BitSet());
      assertThat(move(client, MessageType.LOAD_CHUNKS, ids(0, 1), 1)).isEqualTo(new BitSet());
      fill(0, content(9));
      assertThat(move(client, MessageType.STORE_CHUNKS, ids(0, 1), 0)).isEqualTo(all(1));
      assertThat(move(client, MessageType.LOAD_CHUNKS, ids(0, 1), 1)).isEqualTo(all(1));
      assertThat(chunk(1)).isEqualTo(content(9));
    }
  }

  @Test
  void saysWhichBlocksCouldNotBeLoaded() throws Exception {
    try (TestClient client = worker()) {
      assertThat(open(client, region())).isEmpty();
      fill(0, content(1));
      fill(1, content(3));
      BlockIds stored = ids(0, 4).select(0, BitSet.valueOf(new long[] {0b1010}));
      assertThat(move(client, MessageType.STORE_CHUNKS, stored, 0, 1)).isEqualTo(all(2));
      BitSet moved = move(client, MessageType.LOAD_CHUNKS, ids(0, 4), 4, 5, 6, 7);
      assertThat(moved).isEqualTo(BitSet.valueOf(new long[] {0b1010}));
      assertThat(chunk(5)).isEqualTo(content(1));
      assertThat(chunk(7)).isEqualTo(content(3));
    }
  }

  @Test
  void memoryThatIsNotAsAnnouncedIsNotOpened() throws Exception {
    RegionMessage right = region();
    Path onDisk = folder.resolve("region");
    try (TestClient client = worker();
        FileChannel other =
            FileChannel.open(
                onDisk,
                StandardOpenOption.CREATE_NEW,
                StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
      other.write(ByteBuffer.wrap(new byte[1]), BYTES * CHUNKS - 1);
      long inode = ((Number) Files.getAttribute(onDisk, "unix:ino")).longValue();
      RegionMessage[] wrong = {
        new RegionMessage(right.descriptor(), right.byteSize(), right.inode() + 1),
        new RegionMessage(right.descriptor(), right.byteSize() + BYTES, right.inode()),
        new RegionMessage(9999, right.byteSize(), right.inode()),
        new RegionMessage(descriptor(onDisk), BYTES * CHUNKS, inode),
      };
      for (RegionMessage region : wrong) {
        assertThat(open(client, region)).as("%s", region).isNotEmpty();
      }
      assertThat(open(client, right)).isEmpty();
    }
  }

  @Test
  void chunksBeyondTheRegionEndTheConnectionAndTouchNothing() throws Exception {
    try (TestClient client = worker()) {
      assertThat(open(client, region())).isEmpty();
      assertThatThrownBy(() -> move(client, MessageType.STORE_CHUNKS, ids(0, 1), CHUNKS))
          .hasMessageContaining("no such chunk");
    }
    // The daemon may not have noticed yet that the first one is gone.
    try (TestClient client = worker("another tier")) {
      assertThatThrownBy(() -> move(client, MessageType.STORE_CHUNKS, ids(0, 1), 0))
          .hasMessageContaining("region");
      assertThat(Arrays.equals(chunk(0), new byte[BYTES])).isTrue();
    }
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.server.TestEngine.BYTES;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.LookupMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.NamedFields;
import ucm.server.protocol.PlanMessage;
import ucm.server.protocol.ProtocolException;

/** Clients that are not what they should be get a clear refusal, and harm no one else. */
final class RefusalTest extends WithDaemon {

  RefusalTest() {
    super(16 * BYTES);
  }

  private byte[] token() throws IOException {
    return Files.readAllBytes(Daemon.tokenPath(daemon.socket));
  }

  @Test
  void aWrongToken() throws Exception {
    byte[] token = token();
    token[7] ^= 1;
    try (TestClient client = new TestClient(daemon.socket)) {
      assertThatThrownBy(
              () -> client.ask(client.hello(1, 1, token, TestClient.WORKER), MessageType.WELCOME))
          .hasMessageContaining("refused 1: not admitted");
      assertThat(client.receive()).isNull();
    }
  }

  @Test
  void anotherVersion() throws Exception {
    byte[] token = token();
    try (TestClient client = new TestClient(daemon.socket)) {
      assertThatThrownBy(
              () -> client.ask(client.hello(2, 3, token, TestClient.WORKER), MessageType.WELCOME))
          .hasMessageContaining("refused 2: the daemon speaks version 1 of the protocol");
    }
  }

  @Test
  void anUnknownTypeAndTheConnectionGoesOn() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      assertThatThrownBy(() -> client.ask(client.begin(99), MessageType.DONE))
          .hasMessageContaining("refused 3: messages of type 99 are unknown");
      client.ping();
    }
  }

  @Test
  void noHello() throws Exception {
    try (TestClient client = new TestClient(daemon.socket)) {
      assertThatThrownBy(client::ping).hasMessageContaining("the first message is HELLO");
    }
  }

  @Test
  void aBadConfigurationNamesTheLine() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.SCHEDULER)) {
      assertThatThrownBy(() -> client.openScheduler("e", 1, false, "a: [1\nb: 2"))
          .hasMessageContaining("refused 5: ")
          .hasMessageContaining("ucm.yaml");
      client.openScheduler("e", 1, false, daemon.yaml);
    }
  }

  @Test
  void aBadValueOfAStage() throws Exception {
    String yaml = daemon.yaml + "      io_direct: perhaps\n";
    try (TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      assertThatThrownBy(() -> worker.openWorker("e", 1, false, yaml, 0, 512))
          .hasMessageContaining("refused 5: engine e")
          .hasMessageContaining("io_direct");
    }
  }

  /** Such a place may be mended while the engine runs. */
  @Test
  void aDirectoryThatCannotBeMadeNow() throws Exception {
    Path file = Files.writeString(folder.resolve("file"), "in the way");
    String yaml = daemon.yaml.replace(folder.resolve("data").toString(), file + "/data");
    for (int i = 0; i < 2; i++) {
      try (TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
        if (i == 0) {
          assertThatThrownBy(() -> worker.openWorker("e", 1, false, yaml, 0, 512))
              .hasMessageContaining("refused 7: engine e")
              .hasMessageContaining("cannot make the directory");
          Files.delete(file);
        } else {
          worker.openWorker("e", 1, false, yaml, 0, 512);
        }
      }
    }
  }

  @Test
  void moreSharedMemoryThanIsLeftNow(@TempDir Path other) throws Exception {
    try (TestDaemon greedy = new TestDaemon(other, 1L << 44);
        TestClient client = TestClient.admitted(greedy.socket, TestClient.WORKER)) {
      assertThatThrownBy(() -> client.openWorker("e", 1, false, greedy.yaml, 0, 1L << 30))
          .hasMessageContaining("refused 7: ")
          .hasMessageContaining("cannot be served now");
      client.ping();
    }
  }

  @Test
  void twoWorkersOfOneRankAndAnotherLayout() throws Exception {
    try (TestClient first = TestClient.admitted(daemon.socket, TestClient.WORKER);
        TestClient same = TestClient.admitted(daemon.socket, TestClient.WORKER);
        TestClient other = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      first.openWorker("e", 2, false, daemon.yaml, 0, 512);
      assertThatThrownBy(() -> same.openWorker("e", 2, false, daemon.yaml, 0, 512))
          .hasMessageContaining("has a worker of rank 0 already");
      assertThatThrownBy(() -> other.openWorker("e", 2, false, daemon.yaml, 1, 1024))
          .hasMessageContaining("has blocks of");
    }
  }

  @Test
  void slotsThatDoNotFitIntoSharedMemory() throws Exception {
    try (TestDaemon generous = new TestDaemon(folder.resolve("generous"), 1L << 50);
        TestClient worker = TestClient.admitted(generous.socket, TestClient.WORKER)) {
      assertThatThrownBy(
              () -> worker.openWorker("e", 1, false, generous.yaml, 0, Integer.MAX_VALUE - 4095))
          .hasMessageContaining("no staging segment of 1024 slots")
          .hasMessageContaining("lower --staging");
      assertThat(generous.status().get("engines").get(0).get("connected_ranks")).isEmpty();
    }
  }

  @Test
  void aClientThatGetsNoThreadAndTheNextOneIsAdmitted() throws Exception {
    daemon.threadsToRefuse.set(1);
    try (TestClient refused = new TestClient(daemon.socket)) {
      assertThat(refused.receive()).isNull();
    }
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      client.ping();
      // Of the one that asks, and this one.
      assertThat(daemon.status().get("clients").asInt()).isEqualTo(2);
    }
  }

  @Test
  void randomBytesInPlaceOfFrames() throws Exception {
    Random random = new Random(1);
    for (int i = 0; i < 300; i++) {
      byte[] bytes = new byte[random.nextInt(200)];
      random.nextBytes(bytes);
      try (TestClient client =
          i % 2 == 0
              ? new TestClient(daemon.socket)
              : TestClient.admitted(daemon.socket, random.nextInt(3))) {
        client.send(ByteBuffer.wrap(bytes));
      } catch (IOException e) {
        // The daemon may have closed it while it was written to.
      }
    }
    try (TestEngine engine = new TestEngine(daemon, "e", 1, false)) {
      engine.compute(1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17);
    }
  }

  /** 100,000 mutations of right frames: each is read, or refused in words. */
  @Test
  void mutatedFrames() {
    Random random = new Random(2);
    byte[][] right = {
      bytes(
          new FrameWriter(MessageType.LOOKUP, 1)
              .u32(1)
              .string("r")
              .u32(0)
              .u32(3)
              .u32(10)
              .u32(1)
              .string("lora:a")
              .u32(0)
              .ints(new int[] {1, 2, 3})),
      bytes(
          new FrameWriter(MessageType.PLAN, 2)
              .u32(1)
              .u32(1)
              .u64(4)
              .u32(2)
              .ints(new int[] {5})
              .u32(1)
              .u32(1)
              .u32(0)
              .u32(16)),
      bytes(
          new FrameWriter(MessageType.OPEN_SCHEDULER, 3)
              .string("e")
              .u32(0)
              .string("m")
              .string("d")
              .u32(1)
              .u8(0)
              .u32(16)
              .u8(3)
              .string("f")
              .string("a: b")),
      bytes(new FrameWriter(MessageType.RESERVE, 4).ids(BlockIds.of(1, 2))),
      bytes(new FrameWriter(MessageType.OPEN_NAMED, 5).u64(4096).u32(8))
    };
    int refused = 0;
    for (int i = 0; i < 100_000; i++) {
      byte[] frame = right[i % right.length].clone();
      for (int flips = random.nextInt(4); flips >= 0; flips--) {
        frame[random.nextInt(frame.length)] = (byte) random.nextInt();
      }
      int from = 12;
      int length = from + random.nextInt(frame.length - from + 1);
      FrameReader body =
          new FrameReader(
              ByteBuffer.wrap(frame, from, length - from).slice().order(ByteOrder.LITTLE_ENDIAN));
      try {
        Object _ =
            switch (i % right.length) {
              case 0 -> body.record(LookupMessage.class).variant();
              case 1 -> body.record(PlanMessage.class);
              case 3 -> body.ids();
              case 4 -> NamedFields.read(body);
              default -> EngineFields.read(body);
            };
      } catch (ProtocolException e) {
        assertThat(e.getMessage()).isNotBlank();
        refused++;
      }
    }
    assertThat(refused).isGreaterThan(50_000);
  }

  private static byte[] bytes(FrameWriter frame) {
    ByteBuffer bytes = frame.end();
    byte[] copy = new byte[bytes.remaining()];
    bytes.get(copy);
    return copy;
  }

  @Test
  void aFrameThatIsTooLong() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      client.send(
          ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(Frame.MAX_BYTES + 1).flip());
      Frame answer = client.receive();
      assertThat(answer).isNotNull();
      assertThat(answer.type()).isEqualTo(MessageType.REFUSED);
      assertThat(client.receive()).isNull();
    }
  }
}

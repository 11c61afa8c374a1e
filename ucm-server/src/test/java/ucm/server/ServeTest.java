package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;

import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.CommonKeys;
import ucm.platform.memory.SharedFile;
import ucm.server.TestClient.Found;
import ucm.server.TestClient.Planned;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.MessageType;
import ucm.server.session.Engines;

/** Engines at a daemon, over its socket, with blocks in files. */
final class ServeTest extends WithDaemon {

  private static final long[] NONE = {};
  private static final int SLOTS = 32;

  ServeTest() {
    super(SLOTS * BYTES);
  }

  private static int[] prompt(int tokens) {
    return IntStream.range(1000, 1000 + tokens).toArray();
  }

  private TestEngine engine(int tpSize) throws Exception {
    return new TestEngine(daemon, "e", tpSize, false);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void whatOneRequestSavesAnotherLoads(int tpSize) throws Exception {
    try (TestEngine engine = engine(tpSize)) {
      int[] tokens = prompt(5 * BLOCK + 3);
      engine.compute(1, tokens);
      Found found = engine.scheduler.lookup(2, 0, tokens);
      assertThat(found.tokens()).isEqualTo(5 * BLOCK);
      assertThat(found.blocks()).isEqualTo(5);
      engine.check(tokens, 0, found);
      assertThat(engine.scheduler.plan(found.hold(), 5, 2, 5 * BLOCK, 3)).isEmpty();
      for (TestClient worker : engine.workers) {
        worker.report(MessageType.LOADED, new long[] {found.hold()}, NONE);
      }
      engine.settle();
      assertThat(engine.figure("free_slots")).isEqualTo(engine.figure("slots"));
    }
  }

  @Test
  void ofAFullHitTheLastTokenIsComputedAndNothingIsSavedAgain() throws Exception {
    try (TestEngine engine = engine(2)) {
      int[] tokens = prompt(6 * BLOCK);
      engine.compute(1, tokens);
      Found found = engine.scheduler.lookup(2, 4 * BLOCK, tokens);
      assertThat(found.tokens()).isEqualTo(2 * BLOCK - 1);
      assertThat(found.slots()).hasSize(2);
      engine.check(tokens, 4, found);
      assertThat(engine.scheduler.plan(found.hold(), 2, 2, 6 * BLOCK - 1, 1)).isEmpty();
    }
  }

  @Test
  void withMlaOneWriteStoresForAllRanksAndOneReadServesThem() throws Exception {
    try (TestEngine engine = new TestEngine(daemon, "e", 32, true)) {
      int[] tokens = prompt(3 * BLOCK + 1);
      engine.compute(1, tokens);
      assertThat(daemon.metrics.count("posix_dump_bytes")).isEqualTo(3 * BYTES);
      Found found = engine.scheduler.lookup(2, 0, tokens);
      assertThat(found.tokens()).isEqualTo(3 * BLOCK);
      engine.check(tokens, 0, found);
      assertThat(daemon.metrics.count("posix_load_bytes")).isEqualTo(3 * BYTES);
    }
  }

  @Test
  void chunksOfAPromptAreSavedOnceEach() throws Exception {
    try (TestEngine engine = engine(1)) {
      Found _ = engine.scheduler.lookup(1, 0, prompt(100));
      int[][] chunks = {{0, 40, 0, 2}, {40, 40, 2, 3}, {80, 20, 5, 1}};
      for (int[] chunk : chunks) {
        Planned planned = engine.scheduler.plan(0, 0, 1, chunk[0], chunk[1]).getFirst();
        assertThat(planned.firstBlock()).isEqualTo(chunk[2]);
        assertThat(planned.slots()).hasSize(chunk[3]);
      }
    }
  }

  @Test
  void aWorkerThatDiesInASaveLeavesNoBlock() throws Exception {
    int[] tokens = prompt(3 * BLOCK + 1);
    try (TestEngine engine = engine(2)) {
      Found _ = engine.scheduler.lookup(1, 0, tokens);
      Planned planned = engine.scheduler.plan(0, 0, 1, 0, tokens.length).getFirst();
      engine.fill(0, tokens, planned);
      engine.workers.getFirst().report(MessageType.SAVED, new long[] {planned.save()}, NONE);
      engine.workers.getFirst().ping();
      engine.workers.getLast().close();
      while (engine.status().get("connected_ranks").size() > 1) {
        Thread.onSpinWait();
      }
      assertThat(engine.scheduler.lookup(2, 0, tokens).tokens()).isZero();
    }
    while (!daemon.status().get("engines").isEmpty()) {
      Thread.onSpinWait();
    }
    try (TestEngine again = engine(2)) {
      assertThat(again.scheduler.lookup(2, 0, tokens).tokens()).isZero();
    }
  }

  @Test
  void slotsOfAClientThatIsGoneRestBeforeTheyAreUsed() throws Exception {
    try (TestEngine engine = engine(1)) {
      int[] tokens = prompt(4 * BLOCK + 1);
      engine.compute(1, tokens);
      assertThat(engine.scheduler.lookup(2, 0, tokens).slots()).hasSize(4);
      engine.scheduler.close();
      while (engine.figure("resting_slots") < 4) {
        Thread.onSpinWait();
      }
      daemon.nanos.addAndGet(Duration.ofSeconds(61).toNanos());
      while (engine.figure("resting_slots") > 0) {
        Thread.onSpinWait();
      }
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS);
    }
  }

  private static Planned fourBlocksToSave(TestEngine engine) throws Exception {
    int[] tokens = prompt(4 * BLOCK + 1);
    Found _ = engine.scheduler.lookup(1, 0, tokens);
    Planned planned = engine.scheduler.plan(0, 0, 1, 0, tokens.length).getFirst();
    assertThat(planned.slots()).hasSize(4);
    return planned;
  }

  @Test
  void slotsThatAWorkerIsFillingRestUntilItHasDoneSoOrHangsUp() throws Exception {
    try (TestEngine engine = engine(2)) {
      Planned planned = fourBlocksToSave(engine);
      TestClient stopped = engine.workers.getLast();
      stopped.mark(planned.slots().get(2), true);
      engine.scheduler.close();
      while (engine.figure("resting_slots") < 4) {
        Thread.onSpinWait();
      }
      for (int minute = 0; minute < 9; minute++) {
        pass(Duration.ofSeconds(61));
        assertThat(engine.figure("free_slots")).isEqualTo(SLOTS / 2 - 4);
      }
      stopped.mark(planned.slots().get(2), false);
      pass(Duration.ofSeconds(61));
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS / 2);
    }
  }

  @Test
  void marksOfAWorkerThatHangsUpKeepNothing() throws Exception {
    try (TestEngine engine = engine(2)) {
      Planned planned = fourBlocksToSave(engine);
      TestClient killed = engine.workers.getLast();
      killed.mark(planned.slots().get(2), true);
      killed.close();
      while (engine.figure("resting_slots") < 4) {
        Thread.onSpinWait();
      }
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS / 2 - 4);
      pass(Duration.ofSeconds(61));
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS / 2);
    }
  }

  /** Has time pass, and what took too long end. */
  private void pass(Duration time) {
    daemon.nanos.addAndGet(time.toNanos());
    daemon.engines.sweep();
  }

  @Test
  void aPromiseEndsWhenItIsForgottenAskedAnewOrOld() throws Exception {
    try (TestEngine engine = engine(1)) {
      int[] tokens = prompt(4 * BLOCK + 1);
      engine.compute(1, tokens);
      Set<Long> holds = new HashSet<>();
      for (int i = 0; i < 5; i++) {
        holds.add(engine.scheduler.lookup(2, 0, tokens).hold());
      }
      assertThat(holds).hasSize(5);
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS - 4);
      engine.scheduler.forget(2);
      engine.scheduler.ping();
      assertThat(engine.figure("free_slots")).isEqualTo(SLOTS);
      Found old = engine.scheduler.lookup(3, 0, tokens);
      daemon.nanos.addAndGet(Duration.ofSeconds(301).toNanos());
      while (engine.figure("holds") > 0) {
        Thread.onSpinWait();
      }
      assertThat(engine.scheduler.plan(old.hold(), 4, 3, 4 * BLOCK, 1)).isEmpty();
    }
  }

  @Test
  void whatIsComputedFromAFailedLoadIsNotStored() throws Exception {
    try (TestEngine engine = engine(2)) {
      engine.compute(1, prompt(2 * BLOCK + 1));
      int[] tokens = prompt(4 * BLOCK + 1);
      Found found = engine.scheduler.lookup(2, 0, tokens);
      assertThat(found.slots()).hasSize(2);
      Planned planned =
          engine.scheduler.plan(found.hold(), 2, 2, 2 * BLOCK, 2 * BLOCK + 1).getFirst();
      for (int rank = 0; rank < 2; rank++) {
        long[] hold = {found.hold()};
        engine
            .workers
            .get(rank)
            .report(MessageType.LOADED, rank == 0 ? hold : NONE, rank == 0 ? NONE : hold);
        engine.fill(rank, tokens, planned);
        engine.workers.get(rank).report(MessageType.SAVED, new long[] {planned.save()}, NONE);
      }
      engine.settle();
      assertThat(engine.scheduler.plan(0, 0, 2, 0, 4 * BLOCK)).as("until it is handled").isEmpty();
      engine.scheduler.send(new FrameWriter(MessageType.ERRORS_SEEN, 0));
      assertThat(engine.scheduler.plan(0, 0, 2, 0, 4 * BLOCK)).as("known by then").isEmpty();
      assertThat(engine.scheduler.lookup(3, 0, tokens).slots()).hasSize(2);
      assertThat(engine.scheduler.plan(0, 0, 3, 2 * BLOCK, 2 * BLOCK)).hasSize(1);
    }
  }

  @Test
  void aLookupLeavesSlotsForSaves() throws Exception {
    try (TestEngine engine = engine(1)) {
      int[] tokens = prompt((SLOTS - 4) * BLOCK + 1);
      engine.compute(1, tokens);
      Found found = engine.scheduler.lookup(2, 0, tokens);
      assertThat(found.slots()).hasSize(SLOTS - SLOTS / 4);
      assertThat(found.tokens()).isEqualTo(found.slots().size() * BLOCK);
      engine.check(tokens, 0, found);
      assertThat(engine.scheduler.lookup(3, 0, tokens).tokens()).as("all are held").isZero();
      engine.scheduler.forget(2);
      assertThat(engine.scheduler.lookup(3, 0, tokens).slots()).hasSize(SLOTS - SLOTS / 4);
    }
  }

  @Test
  void afterARestartTheBlocksAreFound() throws Exception {
    int[] tokens = prompt(5 * BLOCK + 3);
    try (TestEngine engine = engine(2)) {
      engine.compute(1, tokens);
    }
    stop();
    start();
    try (TestEngine engine = engine(2)) {
      Found found = engine.scheduler.lookup(1, 0, tokens);
      assertThat(found.tokens()).isEqualTo(5 * BLOCK);
      engine.check(tokens, 0, found);
    }
  }

  @Test
  void beforeAllRanksHaveRegisteredNothingIsFound() throws Exception {
    try (TestClient scheduler = TestClient.admitted(daemon.socket, TestClient.SCHEDULER)) {
      scheduler.openScheduler("e", 2, false, daemon.yaml);
      assertThat(scheduler.lookup(1, 0, prompt(50)).tokens()).isZero();
      assertThat(scheduler.plan(0, 0, 1, 0, 50)).isEmpty();
    }
  }

  @Test
  void oneDaemonASocketAndNoSegmentsOfADeadOne() throws Exception {
    assertThatThrownBy(() -> ServerDirectory.take(daemon.socket))
        .hasMessageContaining("another ucm serve answers at " + daemon.socket);
    stop();
    try (ServerDirectory directory = ServerDirectory.take(daemon.socket)) {
      Path left = Files.createFile(Path.of(directory.segmentPrefix() + "left"));
      assertThat(directory.segmentPrefix()).startsWith("/dev/shm/ucm-slots-");
      assertThat(left).doesNotExist();
    }
    start();
  }

  /** Containers of one node may share /dev/shm, and each has its daemon at the same path. */
  @Test
  void segmentsOfALivingDaemonAreLeftAlone() throws Exception {
    stop();
    try (ServerDirectory directory = ServerDirectory.take(daemon.socket)) {
      Path path = Path.of(directory.segmentPrefix() + "living");
      SharedFile living = Objects.requireNonNull(SharedFile.create(path));
      assertThat(directory.segmentPrefix()).isNotEqualTo(directory.segmentPrefix());
      assertThat(path).exists();
      living.close();
      assertThat(directory.segmentPrefix()).isNotEmpty();
      assertThat(path).doesNotExist();
    }
    start();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", ".lock", ".new", "token"})
  void whatIsNotOfADaemonStaysAsItIs(String ending) throws Exception {
    stop();
    String name = ending.equals("token") ? "ucm.token" : "ucm.sock" + ending;
    Path taken = daemon.socket.resolveSibling(name);
    Files.deleteIfExists(taken);
    Files.writeString(taken, "mine");
    refuses(taken, "left as it is");
    assertThat(taken).hasContent("mine");
    Files.delete(taken);
    Files.createDirectory(taken);
    refuses(taken, "left as it is");
    Files.delete(taken);
    Path other = Files.writeString(folder.resolve("other"), "mine");
    Files.createSymbolicLink(taken, other);
    refuses(taken, "left as it is");
    assertThat(other).hasContent("mine");
    Files.delete(taken);
    assertThat(new ProcessBuilder("mkfifo", taken.toString()).start().waitFor()).isZero();
    refuses(taken, "left as it is");
    assertThat(taken).exists();
    Files.delete(taken);
    start();
  }

  private void refuses(Path named, String why) {
    assertThatThrownBy(() -> ServerDirectory.take(daemon.socket).close())
        .hasMessageContaining(named.toString())
        .hasMessageContaining(why);
  }

  @Test
  void aSocketOfAnotherProgramIsLeftToIt() throws Exception {
    stop();
    try (ServerSocketChannel other = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      other.bind(UnixDomainSocketAddress.of(daemon.socket));
      refuses(daemon.socket, "another program answers");
    }
    // Now it is the socket of a program that is dead.
    assertThat(daemon.socket).exists();
    start();
  }

  @Test
  void theDaemonSaysWhatItReadsInAConfiguration() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, 2)) {
      assertThat(settings(client, "/etc/ucm.yaml", daemon.yaml)).isEqualTo(2);
      String off = "use_layerwise: false\n" + daemon.yaml;
      assertThat(settings(client, "/etc/ucm.yaml", off)).isZero();
      assertThat(settings(client, "/etc/ucm.yaml", "\uFEFF" + off)).isZero();
      String both = "save_decode_blocks: true\n" + daemon.yaml;
      assertThat(settings(client, "launch line", both)).isEqualTo(3);
      assertThatThrownBy(() -> settings(client, "/etc/ucm.yaml", "use_layerwise: [1"))
          .hasMessageContaining("refused 5: /etc/ucm.yaml:");
      // It goes on.
      client.ping();
    }
  }

  private static int settings(TestClient client, String name, String yaml) throws Exception {
    FrameWriter question = client.begin(MessageType.CONFIGURATION).string(name).string(yaml);
    return new FrameReader(client.ask(question, MessageType.SETTINGS).body()).u8();
  }

  @Test
  void relativePathsBeginAtTheFolderOfTheFile() throws Exception {
    String yaml = daemon.yaml.replaceAll("storage_backends: .*", "storage_backends: kv/a");
    try (TestClient client = TestClient.admitted(daemon.socket, 2)) {
      assertThat(settings(client, "/etc/ucm.yaml", yaml)).isEqualTo(2);
      assertThatThrownBy(() -> settings(client, "kv_connector_extra_config", yaml))
          .hasMessageContaining("storage_backends: found \"kv/a\", which is relative")
          .hasMessageContaining("write the whole path");
    }
    assertThat(Engines.config("/etc/ucm.yaml", yaml).storeConfig().get(CommonKeys.STORAGE_BACKENDS))
        .containsExactly("/etc/kv/a");
  }

  @Test
  void aDirectoryThatOthersMayEnterIsRefused() throws Exception {
    Path open = Files.createDirectory(folder.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-xr-x"));
    assertThatThrownBy(() -> ServerDirectory.take(open.resolve("ucm.sock")))
        .hasMessageContaining("mode 0700");
  }
}

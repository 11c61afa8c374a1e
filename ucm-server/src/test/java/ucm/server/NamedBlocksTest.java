package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import ucm.api.BlockIds;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.NamedFields.LeasedMessage;
import ucm.server.protocol.NamedFields.ReservedMessage;
import ucm.server.protocol.PlanMessage.PlannedMessage;

/** Workers that name their blocks by themselves, over the socket, with blocks in files. */
final class NamedBlocksTest extends WithDaemon {

  private static final long BYTES = 4096;
  private static final int SLOTS = 16;
  private static final long[] NONE = {};

  NamedBlocksTest() {
    super(SLOTS * BYTES);
  }

  private TestClient worker(String engine) throws Exception {
    TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER);
    assertThat(client.openNamed(engine, 1, daemon.yaml, BYTES, 1 << 20)).isEqualTo(SLOTS);
    return client;
  }

  private static int exists(TestClient client, BlockIds ids) throws Exception {
    return count(client, MessageType.EXISTS, ids);
  }

  private static int count(TestClient client, int type, BlockIds ids) throws Exception {
    return new FrameReader(client.ask(client.begin(type).ids(ids), MessageType.COUNT).body()).u32();
  }

  private static LeasedMessage lease(TestClient client, BlockIds ids) throws Exception {
    return new FrameReader(
            client.ask(client.begin(MessageType.LEASE).ids(ids), MessageType.LEASED).body())
        .record(LeasedMessage.class);
  }

  private static ReservedMessage reserve(TestClient client, BlockIds ids) throws Exception {
    return new FrameReader(
            client.ask(client.begin(MessageType.RESERVE).ids(ids), MessageType.RESERVED).body())
        .record(ReservedMessage.class);
  }

  private static int commit(TestClient client, long save) throws Exception {
    return new FrameReader(
            client.ask(client.begin(MessageType.COMMIT).u64(save), MessageType.COUNT).body())
        .u32();
  }

  private static byte[] content(BlockIds ids, int i) {
    byte[] bytes = new byte[(int) BYTES];
    new Random(ids.high(i)).nextBytes(bytes);
    return bytes;
  }

  private static void fill(TestClient client, BlockIds ids, int i, int slot) {
    MemorySegment.copy(
        content(ids, i), 0, client.slot(slot, BYTES), ValueLayout.JAVA_BYTE, 0, (int) BYTES);
  }

  private static void check(TestClient client, BlockIds ids, LeasedMessage leased) {
    for (int i = 0; i < leased.slots().length; i++) {
      assertThat(client.slot(leased.slots()[i], BYTES).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(content(ids, i));
    }
  }

  /** The save of blocks whose bytes are there. */
  private static long filled(TestClient client, BlockIds ids) throws Exception {
    ReservedMessage reserved = reserve(client, ids);
    for (int i = 0; i < ids.size(); i++) {
      fill(client, ids, i, reserved.slots()[i]);
    }
    return reserved.save();
  }

  private static void store(TestClient client, BlockIds ids) throws Exception {
    assertThat(commit(client, filled(client, ids))).isEqualTo(ids.size());
  }

  private JsonNode status(String engine) throws Exception {
    for (JsonNode one : daemon.status().get("engines")) {
      if (one.get("engine").asString().equals(engine)) {
        return one;
      }
    }
    throw new AssertionError("the daemon does not know " + engine);
  }

  private int figure(String engine, String name) throws Exception {
    return status(engine).get(name).asInt();
  }

  /** Blocks that the upper stage took and the last one refuses are not told as stored. */
  @Test
  void blocksThatTheLastStageHasNoRoomForAreNotStored() throws Exception {
    String full =
        daemon.yaml.replace("Posix", "Cache|Posix")
            + "      cache_buffer_capacity_gb: 0.001\n      posix_min_free_gb: 1000000\n";
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      client.openNamed("a", 1, full, BYTES, 1 << 20);
      for (int round = 0; round < 3; round++) {
        BlockIds ids = ids(8 * round, 8 * round + 8);
        assertThat(commit(client, filled(client, ids))).isZero();
        assertThat(exists(client, ids)).isZero();
        assertThat(lease(client, ids).slots()).isEmpty();
      }
    }
  }

  @Test
  void whatOneEngineStoresItAndOthersRead() throws Exception {
    try (TestClient first = worker("a");
        TestClient second = worker("b")) {
      BlockIds ids = ids(0, 8);
      assertThat(exists(first, ids)).isZero();
      assertThat(lease(first, ids).slots()).isEmpty();
      store(first, ids);
      for (TestClient client : new TestClient[] {first, second}) {
        assertThat(exists(client, ids(0, 20))).isEqualTo(8);
        assertThat(exists(client, ids(20, 30))).isZero();
        LeasedMessage leased = lease(client, ids(0, 20));
        assertThat(leased.found()).isEqualTo(8);
        assertThat(leased.slots()).hasSize(8).doesNotHaveDuplicates();
        check(client, ids, leased);
        client.report(MessageType.LOADED, new long[] {leased.hold()}, NONE);
        client.ping();
      }
      assertThat(figure("a", "free_slots")).isEqualTo(SLOTS);
      assertThat(figure("b", "free_slots")).isEqualTo(SLOTS);
      assertThat(figure("a", "stored_blocks")).isEqualTo(8);
    }
  }

  @Test
  void aSaveThatIsCommittedTwiceIsAnsweredTwice() throws Exception {
    try (TestClient client = worker("a")) {
      BlockIds ids = ids(0, SLOTS);
      long save = filled(client, ids);
      client.send(client.begin(MessageType.COMMIT).u64(save));
      client.send(client.begin(MessageType.COMMIT).u64(save));
      for (int i = 0; i < 2; i++) {
        // None where the save had ended before it was asked for again.
        int count = new FrameReader(client.answer(MessageType.COUNT).body()).u32();
        assertThat(count).isIn(0, SLOTS);
      }
      assertThat(exists(client, ids)).isEqualTo(SLOTS);
    }
  }

  @Test
  void whatIsStoredGetsNoSlotAgain() throws Exception {
    try (TestClient client = worker("a")) {
      store(client, ids(2, 4));
      ReservedMessage reserved = reserve(client, ids(0, 6));
      assertThat(reserved.slots()[2]).isEqualTo(ReservedMessage.STORED);
      assertThat(reserved.slots()[3]).isEqualTo(ReservedMessage.STORED);
      int next = 0;
      for (int i : new int[] {0, 1, 4, 5}) {
        fill(client, ids(0, 6), i, reserved.slots()[i]);
        next++;
      }
      assertThat(commit(client, reserved.save())).isEqualTo(next);
      LeasedMessage leased = lease(client, ids(0, 6));
      check(client, ids(0, 6), leased);
      assertThat(leased.slots()).hasSize(6);
      assertThat(reserve(client, ids(0, 6)).save()).isZero();
    }
  }

  @Test
  void whenSlotsAreShortTheFirstBlocksGetThem() throws Exception {
    try (TestClient client = worker("a")) {
      store(client, ids(0, SLOTS));
      LeasedMessage leased = lease(client, ids(0, SLOTS));
      assertThat(leased.found()).isEqualTo(SLOTS);
      assertThat(leased.slots()).hasSize(SLOTS * 3 / 4);
      assertThat(lease(client, ids(0, 1)).slots()).isEmpty();
      assertThat(lease(client, ids(0, 1)).found()).isEqualTo(1);
      ReservedMessage reserved = reserve(client, ids(50, 60));
      assertThat(reserved.slots()[SLOTS / 4 - 1]).isNotNegative();
      assertThat(reserved.slots()[SLOTS / 4]).isEqualTo(PlannedMessage.NO_SLOT);
      assertThat(reserve(client, ids(60, 61)).save()).isZero();
      client.report(MessageType.SAVED, NONE, new long[] {reserved.save()});
      client.report(MessageType.LOADED, new long[] {leased.hold()}, NONE);
      client.ping();
      assertThat(figure("a", "free_slots")).isEqualTo(SLOTS);
      assertThat(exists(client, ids(50, 60))).isZero();
      assertThat(commit(client, reserved.save())).isZero();
    }
  }

  private Set<Path> blockFiles() throws IOException {
    try (Stream<Path> files = Files.walk(folder.resolve("data"))) {
      return files
          .filter(one -> String.valueOf(one.getFileName()).matches("[0-9a-f]{32}"))
          .collect(Collectors.toSet());
    }
  }

  @Test
  void aBlockThatIsGoneWhenItIsReadEndsThePrefix() throws Exception {
    try (TestClient client = worker("a")) {
      store(client, ids(0, 3));
      Set<Path> others = blockFiles();
      store(client, ids(3, 4));
      Set<Path> third = blockFiles();
      third.removeAll(others);
      store(client, ids(4, 8));
      assertThat(third).hasSize(1);
      Files.delete(third.iterator().next());
      LeasedMessage leased = lease(client, ids(0, 8));
      assertThat(leased.slots()).hasSize(3);
      assertThat(leased.found()).isEqualTo(3);
      check(client, ids(0, 8), leased);
      client.report(MessageType.LOADED, new long[] {leased.hold()}, NONE);
      client.ping();
      assertThat(figure("a", "free_slots")).isEqualTo(SLOTS);
    }
  }

  @Test
  void aWorkerGetsNoMoreSlotsThanItAsksFor() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      assertThat(client.openNamed("few", 1, daemon.yaml, BYTES, 3)).isEqualTo(3);
    }
  }

  @Test
  void whatAWorkerThatIsGoneHeldRestsAndIsFreeThen() throws Exception {
    try (TestClient other = TestClient.admitted(daemon.socket, TestClient.SCHEDULER)) {
      // It keeps the engine, and with it the slots.
      other.openScheduler("a", 1, false, daemon.yaml);
      TestClient client = worker("a");
      store(client, ids(0, 5));
      assertThat(lease(client, ids(0, 5)).slots()).hasSize(5);
      assertThat(reserve(client, ids(10, 14)).save()).isNotZero();
      client.close();
      while (figure("a", "resting_slots") < 9) {
        Thread.onSpinWait();
      }
      assertThat(figure("a", "free_slots")).isEqualTo(SLOTS - 9);
      daemon.nanos.addAndGet(Duration.ofSeconds(61).toNanos());
      while (figure("a", "resting_slots") > 0) {
        Thread.onSpinWait();
      }
      assertThat(figure("a", "free_slots")).isEqualTo(SLOTS);
      try (TestClient again = worker("a")) {
        assertThat(exists(again, ids(0, 5))).isEqualTo(5);
        assertThat(exists(again, ids(10, 14))).isZero();
      }
    }
  }

  @Test
  void aWorkerThatIsGoneWhileItsQuestionsAreAnsweredLeavesNothing() throws Exception {
    try (TestClient other = TestClient.admitted(daemon.socket, TestClient.SCHEDULER)) {
      other.openScheduler("a", 1, false, daemon.yaml);
      for (int i = 0; i < 20; i++) {
        try (TestClient client = worker("a")) {
          client.send(client.begin(MessageType.RESERVE).ids(ids(0, 2)));
          client.send(client.begin(MessageType.LEASE).ids(ids(0, 2)));
        }
        while (!status("a").get("connected_ranks").isEmpty()) {
          Thread.onSpinWait();
        }
        while (figure("a", "holds") + figure("a", "saves") > 0) {
          Thread.onSpinWait();
        }
        daemon.nanos.addAndGet(Duration.ofSeconds(61).toNanos());
        while (figure("a", "free_slots") < SLOTS) {
          Thread.onSpinWait();
        }
      }
    }
  }

  @Test
  void anEngineOfSeveralRanksIsRefused() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      assertThatThrownBy(() -> client.openNamed("a", 2, daemon.yaml, BYTES, 8))
          .hasMessageContaining("refused 5")
          .hasMessageContaining("each rank is to be an engine of its own");
    }
  }

  @Test
  void aStoreWithoutBytesIsRefused() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      String lite = daemon.yaml + "use_lite: true\n";
      assertThatThrownBy(() -> client.openNamed("a", 1, lite, BYTES, 8))
          .hasMessageContaining("refused 5")
          .hasMessageContaining("keeps no bytes");
      assertThat(status("a").get("connected_ranks")).isEmpty();
    }
  }

  @Test
  void aWorkerWhoseBlocksAreNamedByTokensNamesNone() throws Exception {
    try (TestClient client = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      client.openWorker("a", 1, false, daemon.yaml, 0, BYTES);
      assertThatThrownBy(() -> exists(client, ids(0, 1)))
          .hasMessageContaining("refused 4: the worker is to be opened by OPEN_NAMED first");
      assertThat(client.receive()).isNull();
    }
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import tools.jackson.databind.JsonNode;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.TestClient.Found;
import ucm.server.TestClient.Planned;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.MessageType;

/** An engine with a scheduler side and some ranks, whose blocks say what they are. */
final class TestEngine implements AutoCloseable {

  static final int BLOCK = TestClient.BLOCK_TOKENS;
  static final long TENSOR = 1024;
  static final long BYTES = 4 * TENSOR;

  private static final long[] NONE = {};

  final TestClient scheduler;
  final List<TestClient> workers = new ArrayList<>();

  private final TestDaemon daemon;
  private final String id;
  private final boolean mla;

  TestEngine(TestDaemon daemon, String id, int tpSize, boolean mla) throws Exception {
    this(daemon, id, tpSize, mla, IdentityMessage.NONE);
  }

  TestEngine(TestDaemon daemon, String id, int tpSize, boolean mla, IdentityMessage identity)
      throws Exception {
    this(daemon, id, tpSize, mla, identity, KvLayout.uniform(2, TENSOR, TENSOR));
  }

  /**
   * Registers all ranks.
   *
   * @param layout of blocks of {@link #BYTES}
   */
  TestEngine(
      TestDaemon daemon,
      String id,
      int tpSize,
      boolean mla,
      IdentityMessage identity,
      KvLayout layout)
      throws Exception {
    this.daemon = daemon;
    this.id = id;
    this.mla = mla;
    for (int rank = 0; rank < tpSize; rank++) {
      TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER);
      worker.identify(identity);
      worker.openWorker(id, tpSize, mla, daemon.yaml, rank, layout);
      workers.add(worker);
    }
    scheduler = TestClient.admitted(daemon.socket, TestClient.SCHEDULER);
    scheduler.identify(identity);
    scheduler.openScheduler(id, tpSize, mla, daemon.yaml);
  }

  /** Computes a prompt in one step, and saves it on all ranks. */
  void compute(int handle, int... tokens) throws Exception {
    assertThat(scheduler.lookup(handle, 0, tokens).tokens()).isZero();
    Planned planned = scheduler.plan(0, 0, handle, 0, tokens.length).getFirst();
    for (int rank = 0; rank < workers.size(); rank++) {
      fill(rank, tokens, planned);
      workers.get(rank).report(MessageType.SAVED, new long[] {planned.save()}, NONE);
    }
    scheduler.forget(handle);
    settle();
  }

  void fill(int rank, int[] tokens, Planned planned) {
    for (int i = 0; i < planned.slots().size(); i++) {
      MemorySegment slot = workers.get(rank).slot(planned.slots().get(i), BYTES);
      for (long at = 0; at < BYTES; at += Long.BYTES) {
        long word = word(tokens, planned.firstBlock() + i, rank, at);
        slot.set(ValueLayout.JAVA_LONG_UNALIGNED, at, word);
      }
    }
  }

  /** Compares each byte of what was found. */
  void check(int[] tokens, int firstBlock, Found found) {
    for (int rank = 0; rank < workers.size(); rank++) {
      for (int i = 0; i < found.slots().size(); i++) {
        MemorySegment slot = workers.get(rank).promised(found.slots().get(i), BYTES);
        for (long at = 0; at < BYTES; at += Long.BYTES) {
          assertThat(slot.get(ValueLayout.JAVA_LONG_UNALIGNED, at))
              .isEqualTo(word(tokens, firstBlock + i, rank, at));
        }
      }
    }
  }

  private long word(int[] tokens, int block, int rank, long at) {
    return 31 * (31 * (31L * tokens[block * BLOCK] + block) + (mla ? 0 : rank)) + at;
  }

  /** Waits until the daemon has nothing on its way. */
  void settle() throws Exception {
    for (TestClient worker : workers) {
      worker.ping();
    }
    scheduler.ping();
    while (status().get("saves").asInt() > 0) {
      Thread.onSpinWait();
    }
  }

  JsonNode status() throws Exception {
    for (JsonNode engine : daemon.status().get("engines")) {
      if (engine.get("engine").asString().equals(id)) {
        return engine;
      }
    }
    throw new AssertionError("the daemon does not know " + id);
  }

  int figure(String name) throws Exception {
    return status().get(name).asInt();
  }

  @Override
  public void close() throws IOException {
    scheduler.close();
    for (TestClient worker : workers) {
      worker.close();
    }
  }
}

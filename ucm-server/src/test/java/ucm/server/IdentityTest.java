package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import ucm.server.TestClient.Found;
import ucm.server.protocol.Frame;
import ucm.server.protocol.FrameWriter;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.MessageType;

/** Whose blocks an engine is given: those of its own model, adapter, images and time. */
final class IdentityTest extends WithDaemon {

  private static final int ALL = 5 * BLOCK;
  private static final int[] PROMPT = IntStream.range(1000, 1000 + ALL + 3).toArray();

  private int engines;

  IdentityTest() {
    super(32 * BYTES);
  }

  private void restart() throws Exception {
    stop();
    start();
  }

  private static IdentityMessage model(String weights) {
    return new IdentityMessage("", "config", weights, "");
  }

  /** An engine with an id of its own, as the end of the one before it takes a moment. */
  private TestEngine engine(IdentityMessage identity) throws Exception {
    return new TestEngine(daemon, "e" + ++engines, 1, false, identity);
  }

  private static int found(TestEngine engine, int handle) throws Exception {
    Found found = engine.scheduler.lookup(handle, 0, PROMPT);
    engine.check(PROMPT, 0, found);
    engine.scheduler.forget(handle);
    return found.tokens();
  }

  private int foundByNew(IdentityMessage identity) throws Exception {
    try (TestEngine engine = engine(identity)) {
      return found(engine, 1);
    }
  }

  private static void reset(TestEngine engine, String generation) throws Exception {
    FrameWriter reset = engine.scheduler.begin(MessageType.RESET).string(generation);
    Frame _ = engine.scheduler.ask(reset, MessageType.DONE);
  }

  @Test
  void weightsUnderOnePathAreToldApart() throws Exception {
    try (TestEngine engine = engine(model("a"))) {
      engine.compute(1, PROMPT);
      assertThat(engine.status().get("model_fingerprint").asString()).isEqualTo("weights");
    }
    assertThat(foundByNew(model("b"))).isZero();
    assertThat(foundByNew(new IdentityMessage("", "other", "a", ""))).isZero();
    assertThat(foundByNew(IdentityMessage.NONE)).isZero();
    assertThat(foundByNew(model("a"))).as("control").isEqualTo(ALL);
  }

  @Test
  void whatAnEngineHasDisownedStaysSoWhenTheDaemonEnds() throws Exception {
    try (TestEngine engine = engine(model("a"))) {
      engine.compute(1, PROMPT);
    }
    restart();
    assertThat(foundByNew(model("a"))).as("control").isEqualTo(ALL);
    try (TestEngine engine = engine(model("a"))) {
      reset(engine, "first");
      assertThat(found(engine, 1)).isZero();
      engine.compute(2, PROMPT);
      assertThat(found(engine, 3)).isEqualTo(ALL);
    }
    restart();
    // Neither the old weights nor those that the other engine got at run time need be its own.
    assertThat(foundByNew(model("a"))).isZero();
    assertThat(foundByNew(new IdentityMessage("", "config", "a", "first")))
        .as("the same engine, connected again")
        .isEqualTo(ALL);
    // New engines share what they compute from then on.
    try (TestEngine engine = engine(model("a"))) {
      engine.compute(1, PROMPT);
    }
    restart();
    assertThat(foundByNew(model("a"))).isEqualTo(ALL);
    assertThat(foundByNew(model("b"))).isZero();
  }

  @Test
  void anEngineThatRunsGoesOnWhenAnotherOneOfItsModelIsReset() throws Exception {
    try (TestEngine running = new TestEngine(daemon, "running", 1, false, model("a"));
        TestEngine other = engine(model("a"))) {
      running.compute(1, PROMPT);
      reset(other, "first");
      assertThat(found(other, 1)).isZero();
      assertThat(found(running, 2)).isEqualTo(ALL);
      other.compute(2, PROMPT);
      assertThat(foundByNewOf("new")).isZero();
    }
  }

  private int foundByNewOf(String id) throws Exception {
    try (TestEngine engine = new TestEngine(daemon, id, 1, false, model("a"))) {
      return found(engine, 1);
    }
  }

  @Test
  void aResetBeforeAnyRankHasRegisteredCounts() throws Exception {
    try (TestEngine engine = engine(model("a"))) {
      engine.compute(1, PROMPT);
    }
    try (TestClient scheduler = TestClient.admitted(daemon.socket, TestClient.SCHEDULER);
        TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      scheduler.openScheduler("early", 1, false, daemon.yaml);
      Frame _ = scheduler.ask(scheduler.begin(MessageType.RESET).string("first"), MessageType.DONE);
      worker.identify(model("a"));
      worker.openWorker("early", 1, false, daemon.yaml, 0, TestEngine.TENSOR);
      assertThat(scheduler.lookup(1, 0, PROMPT).tokens()).isZero();
    }
    restart();
    assertThat(foundByNew(model("a"))).isZero();
  }

  @Test
  void ofTwoEnginesWithOneIdTheSecondHasASessionOfItsOwn() throws Exception {
    IdentityMessage second = new IdentityMessage("2", "config", "a", "");
    try (TestEngine one =
            new TestEngine(daemon, "e", 1, false, new IdentityMessage("1", "config", "a", ""));
        TestEngine other = new TestEngine(daemon, "e", 1, false, second)) {
      one.compute(1, PROMPT);
      assertThat(found(other, 1)).isEqualTo(ALL);
      assertThat(daemon.status().get("engines").valueStream().map(e -> e.get("engine").asString()))
          .containsExactly("e", "e-2");
    }
    // Without a launch, as older clients are, it is refused.
    try (TestEngine _ = new TestEngine(daemon, "old", 1, false)) {
      assertThatThrownBy(() -> new TestEngine(daemon, "old", 1, false))
          .hasMessageContaining("rank 0 already");
    }
  }

  @Test
  void ranksOfOneEngineHaveOneModel() throws Exception {
    try (TestClient one = TestClient.admitted(daemon.socket, TestClient.WORKER);
        TestClient other = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      one.identify(model("a"));
      other.identify(model("b"));
      one.openWorker("e", 2, false, daemon.yaml, 0, TestEngine.TENSOR);
      assertThatThrownBy(() -> other.openWorker("e", 2, false, daemon.yaml, 1, TestEngine.TENSOR))
          .hasMessageContaining("is another model at its rank 1");
      one.identify(model("b"));
      assertThatThrownBy(() -> one.answer(MessageType.DONE))
          .hasMessageContaining("IDENTIFY comes before the engine is opened");
    }
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;

import java.nio.file.Path;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.server.HangingStore.Hang;
import ucm.server.TestClient.Found;
import ucm.server.TestClient.Planned;
import ucm.server.protocol.MessageType;

/** A store that hangs holds up what asked it and nothing else. */
@Timeout(60)
final class HangingStoreTest {

  private static final StoreCatalog HANGING = StoreCatalog.of(Map.of("Hanging", HangingStore::new));
  private static final int SLOTS = 32;
  private static final int[] STORED = prompt(1000, 4 * BLOCK + 1);
  private static final int[] OTHER = prompt(9000, 2 * BLOCK + 1);

  @TempDir private Path folder;

  private TestDaemon daemon;
  private TestEngine engine;

  @BeforeEach
  void start() throws Exception {
    daemon = new TestDaemon(folder, HANGING, "Hanging", SLOTS * BYTES);
    engine = new TestEngine(daemon, "e", 1, false);
    engine.compute(1, STORED);
  }

  @AfterEach
  void stop() throws Exception {
    engine.close();
    daemon.close();
  }

  private static int[] prompt(int from, int tokens) {
    return IntStream.range(from, from + tokens).toArray();
  }

  @Test
  void otherRequestsGoOn() throws Exception {
    try (Hang hang = HangingStore.nextLookup()) {
      engine.scheduler.beginLookup(2, 0, STORED);
      hang.awaitReached();
      // Looks up, plans, saves and forgets.
      engine.compute(3, OTHER);
      Found other = engine.scheduler.lookup(4, 0, OTHER);
      assertThat(other.tokens()).isEqualTo(2 * BLOCK);
      assertThat(engine.scheduler.plan(other.hold(), 2, 4, 2 * BLOCK, 1)).isEmpty();
      engine.workers.getFirst().report(MessageType.LOADED, new long[] {other.hold()}, new long[0]);
      engine.settle();
    }
    Found late = engine.scheduler.found();
    assertThat(late.tokens()).isEqualTo(4 * BLOCK);
    engine.check(STORED, 0, late);
  }

  /** What a request does that has waited for its look-up long enough. */
  private enum Next {
    ENDS,
    ASKS_AGAIN,
    RUNS
  }

  @ParameterizedTest
  @EnumSource
  void anAnswerThatIsNotAwaitedHoldsNothing(Next next) throws Exception {
    int held = 0;
    try (Hang hang = HangingStore.nextLookup()) {
      engine.scheduler.beginLookup(2, 0, STORED);
      hang.awaitReached();
      switch (next) {
        case ENDS -> engine.scheduler.forget(2);
        case ASKS_AGAIN -> held = engine.scheduler.lookup(2, 0, STORED).slots().size();
        case RUNS -> assertThat(engine.scheduler.plan(0, 0, 2, 0, BLOCK)).hasSize(1);
      }
      engine.scheduler.ping();
    }
    Found late = engine.scheduler.found();
    assertThat(late.hold()).isZero();
    assertThat(late.tokens()).isZero();
    assertThat(engine.figure("holds")).isEqualTo(next == Next.ASKS_AGAIN ? 1 : 0);
    int saving = next == Next.RUNS ? 1 : 0;
    assertThat(engine.figure("free_slots")).isEqualTo(SLOTS - held - saving);
  }

  @Test
  void aRequestThatRunsGivesBackWhatItDidNotTake() throws Exception {
    assertThat(engine.scheduler.lookup(2, 0, STORED).slots()).hasSize(4);
    assertThat(engine.scheduler.plan(0, 0, 2, 0, BLOCK)).hasSize(1);
    assertThat(engine.figure("holds")).isZero();
    assertThat(engine.figure("free_slots")).isEqualTo(SLOTS - 1);
  }

  @Test
  void anEngineEndsWhileItsLookupHangs() throws Exception {
    try (Hang hang = HangingStore.nextLookup()) {
      engine.scheduler.beginLookup(2, 0, STORED);
      hang.awaitReached();
      engine.close();
      while (!daemon.status().get("engines").isEmpty()) {
        Thread.onSpinWait();
      }
    }
    try (TestEngine again = new TestEngine(daemon, "e", 1, false)) {
      assertThat(again.scheduler.lookup(1, 0, STORED).tokens()).isEqualTo(4 * BLOCK);
    }
  }

  @Test
  void loadsGoOnWhileSavesWaitForTheStore() throws Exception {
    int saves = 16;
    try (Hang _ = HangingStore.nextDumps(saves)) {
      for (int i = 0; i < saves; i++) {
        save(2 + i, prompt(5000 + i * BLOCK, BLOCK + 1));
      }
      Found found = engine.scheduler.lookup(2 + saves, 0, STORED);
      assertThat(found.tokens()).isEqualTo(4 * BLOCK);
      engine.check(STORED, 0, found);
      assertThat(engine.figure("saves")).isEqualTo(saves);
    }
    engine.settle();
  }

  /** Has a prompt saved, and does not wait for it. */
  private void save(int handle, int... tokens) throws Exception {
    assertThat(engine.scheduler.lookup(handle, 0, tokens).tokens()).isZero();
    Planned planned = engine.scheduler.plan(0, 0, handle, 0, tokens.length).getFirst();
    engine.fill(0, tokens, planned);
    engine.workers.getFirst().report(MessageType.SAVED, new long[] {planned.save()}, new long[0]);
  }

  @Test
  void anEngineEndsWhileItsSaveHangsAndOthersBeginAndEnd() throws Exception {
    int[] tokens = prompt(5000, 3 * BLOCK + 1);
    try (Hang hang = HangingStore.nextDumps(1)) {
      save(2, tokens);
      hang.awaitReached();
      engine.close();
      while (!engine.status().get("connected_ranks").isEmpty()) {
        Thread.onSpinWait();
      }
      try (TestEngine other = new TestEngine(daemon, "other", 1, false)) {
        other.compute(1, OTHER);
        JsonNode engines = daemon.status().get("engines");
        assertThat(engines).hasSize(2);
        assertThat(engines.get(1).get("engine").asString()).as("that came last").isEqualTo("other");
      }
      while (daemon.status().get("engines").size() > 1) {
        Thread.onSpinWait();
      }
    }
    while (!daemon.status().get("engines").isEmpty()) {
      Thread.onSpinWait();
    }
    try (TestEngine again = new TestEngine(daemon, "e", 1, false)) {
      Found found = again.scheduler.lookup(1, 0, tokens);
      assertThat(found.tokens()).as("it was stored").isEqualTo(3 * BLOCK);
      again.check(tokens, 0, found);
    }
  }
}

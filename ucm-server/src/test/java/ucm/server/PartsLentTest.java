package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.TestClient.Found;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.MessageType;

/** Ranks that have parts of blocks read each its own where the store has it. */
@Timeout(60)
final class PartsLentTest {

  private static final int RANKS = 2;
  private static final int SLOTS = 64;
  // Of 255 slots of the pool half may be lent, to each rank the same.
  private static final int[] PROMPT = prompt(0, 6);
  private static final long[] NONE = {};

  @TempDir private Path folder;
  private TestDaemon daemon;
  private TestEngine engine;

  @BeforeEach
  void start() throws Exception {
    daemon = new TestDaemon(folder, StoreCatalog.find(), "Cache|Posix", RANKS * SLOTS * BYTES);
    engine = engine("e");
  }

  @AfterEach
  void stop() throws Exception {
    engine.close();
    daemon.close();
  }

  private TestEngine engine(String id) throws Exception {
    KvLayout layout = KvLayout.uniform(1, BYTES / 2, BYTES / 2);
    return new TestEngine(daemon, id, RANKS, false, IdentityMessage.NONE, layout);
  }

  private static int[] prompt(int which, int blocks) {
    return IntStream.rangeClosed(0, blocks * BLOCK).map(at -> 1000 * which + at).toArray();
  }

  private void borrow(TestEngine by) throws Exception {
    for (TestClient worker : by.workers) {
      assertThat(worker.borrow(true)).isTrue();
    }
    assertThat(by.status().get("reads_in_place").asBoolean()).isTrue();
  }

  /** How many of the slots rank 0 and rank 1 read elsewhere. */
  private long[] lent(Found found) {
    return engine.workers.stream()
        .mapToLong(worker -> found.slots().stream().filter(worker::isLent).count())
        .toArray();
  }

  /** All ranks have mapped the pool, and blocks there are promised to them. */
  private Found promised() throws Exception {
    borrow(engine);
    engine.compute(1, PROMPT);
    return engine.scheduler.lookup(2, 0, PROMPT);
  }

  /** What was promised rests for a minute, and is lent that long: somebody may still be copying. */
  private void rests(Found found) throws Exception {
    while (engine.figure("resting_slots") < 6) {
      Thread.onSpinWait();
    }
    flood();
    assertThat(lent(found)).containsExactly(6, 6);
    engine.check(PROMPT, 0, found);
    daemon.nanos.addAndGet(Duration.ofSeconds(61).toNanos());
    while (engine.figure("resting_slots") > 0) {
      Thread.onSpinWait();
    }
    assertThat(lent(found)).containsExactly(0, 0);
  }

  private void take(Found found) throws Exception {
    int blocks = found.slots().size();
    assertThat(engine.scheduler.plan(found.hold(), blocks, 2, blocks * BLOCK, 1)).isEmpty();
  }

  @Test
  void eachRankReadsItsOwnPartInMemoryAndFromFiles() throws Exception {
    Found found = promised();
    assertThat(lent(found)).containsExactly(6, 6);
    engine.check(PROMPT, 0, found);
    Set<Integer> places = new TreeSet<>();
    engine.workers.forEach(worker -> found.slots().forEach(slot -> places.add(worker.place(slot))));
    assertThat(places).as("none is another's").hasSize(RANKS * 6);
    engine.close();
    // Other blocks take the room of these.
    engine = engine("f");
    borrow(engine);
    flood(engine);
    Found again = engine.scheduler.lookup(3, 0, PROMPT);
    assertThat(lent(again)).containsExactly(6, 6);
    engine.check(PROMPT, 0, again);
  }

  /** The control. */
  @Test
  void thePartOfAnotherRankIsFoundOut() throws Exception {
    Found found = promised();
    TestClient first = engine.workers.removeFirst();
    engine.workers.addLast(first);
    assertThatThrownBy(() -> engine.check(PROMPT, 0, found)).isInstanceOf(AssertionError.class);
  }

  @Test
  void whatIsLentStaysUntilAllRanksHaveCopiedIt() throws Exception {
    Found found = promised();
    take(found);
    engine.workers.getFirst().report(MessageType.LOADED, new long[] {found.hold()}, NONE);
    engine.workers.getFirst().ping();
    flood();
    assertThat(lent(found)).containsExactly(6, 6);
    engine.check(PROMPT, 0, found);
    engine.workers.getLast().report(MessageType.LOADED, new long[] {found.hold()}, NONE);
    engine.settle();
    assertThat(lent(found)).containsExactly(0, 0);
    assertThat(engine.figure("free_slots")).isEqualTo(SLOTS);
    // Else so many turns would leave nothing that may be lent.
    for (int turn = 0; turn < 50; turn++) {
      Found more = engine.scheduler.lookup(2, 0, PROMPT);
      assertThat(lent(more)).containsExactly(6, 6);
    }
  }

  /** Another engine fills the pool with as much as it holds. */
  private void flood() throws Exception {
    try (TestEngine other = engine("other")) {
      flood(other);
    }
  }

  private static void flood(TestEngine by) throws Exception {
    for (int i = 1; i < 30; i++) {
      by.compute(100 + i, prompt(i, 6));
    }
  }

  @Test
  void whatIsLentToARankThatHangsUpOrIsStoppedRests() throws Exception {
    Found found = promised();
    take(found);
    // Its mapping stays.
    engine.workers.getLast().close();
    rests(found);
    assertThat(engine.status().get("reads_in_place").asBoolean()).isFalse();
  }

  @Test
  void aRankThatIsStoppedForLongLosesWhatItWasLent() throws Exception {
    Found found = promised();
    take(found);
    daemon.nanos.addAndGet(Duration.ofSeconds(301).toNanos());
    rests(found);
  }

  @Test
  void whatIsLentToAnEngineThatEndsStaysForATime() throws Exception {
    Found found = promised();
    take(found);
    engine.close();
    while (!daemon.status().get("engines").isEmpty()) {
      Thread.onSpinWait();
    }
    flood();
    assertThat(lent(found)).containsExactly(6, 6);
    engine.check(PROMPT, 0, found);
  }

  @Test
  void nothingIsLentBeforeAllRanksHaveMappedIt() throws Exception {
    engine.compute(1, PROMPT);
    assertThat(engine.workers.getFirst().borrow(true)).isTrue();
    Found found = engine.scheduler.lookup(2, 0, PROMPT);
    assertThat(lent(found)).containsExactly(0, 0);
    engine.check(PROMPT, 0, found);
  }

  @Test
  void aWorkerThatKnowsOfNoPlacesIsLentNothing() throws Exception {
    for (TestClient worker : engine.workers) {
      assertThat(worker.borrow(false)).isFalse();
    }
    engine.compute(1, PROMPT);
    Found found = engine.scheduler.lookup(2, 0, PROMPT);
    assertThat(lent(found)).containsExactly(0, 0);
    engine.check(PROMPT, 0, found);
  }

  @Test
  void whatMayNotBeLentIsCopied() throws Exception {
    borrow(engine);
    int[] first = prompt(1, 40);
    int[] second = prompt(2, 40);
    engine.compute(1, first);
    engine.compute(2, second);
    Found one = engine.scheduler.lookup(3, 0, first);
    Found two = engine.scheduler.lookup(4, 0, second);
    engine.check(first, 0, one);
    engine.check(second, 0, two);
    long[] lent = lent(two);
    assertThat(IntStream.range(0, RANKS).mapToLong(i -> lent(one)[i] + lent[i]).sum())
        .as("half of the pool")
        .isLessThanOrEqualTo(128)
        .isPositive();
    assertThat(one.slots().size() + two.slots().size()).isGreaterThan(40);
  }
}

package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.FaultyFiles.Call;
import ucm.store.file.fixture.InOneDirectory;
import ucm.store.file.fixture.Waiting;
import ucm.testkit.BlockBytes;

/** Look-ups on a file system that is fast, slow, or does not answer. */
@Timeout(180)
final class DiskLookupTest extends InOneDirectory {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(512, 512, 512);
  private static final String LOOKUP = "ucm-local-lookup-";
  private static final String SWEEP = "ucm-local-sweep-";

  private final BlockIds ids = BlockBytes.ids(80, 48);
  private final BlockIds absent = BlockBytes.ids(81, 1000);
  private final FaultyFiles.Hang hang = new FaultyFiles.Hang();
  private final ConcurrentLinkedQueue<String> askers = new ConcurrentLinkedQueue<>();

  DiskLookupTest() {
    super(LAYOUT);
  }

  @BeforeEach
  void dumpsBlocks() throws Exception {
    stores.dump(stores.open(), ids).requireOk();
  }

  /** Without an index, so that everything is asked of the disk. */
  private LocalFileStore open(int threads, int timeoutMs) {
    Map<String, Object> settings =
        Map.of(
            "local_index_max_blocks", 0,
            "local_lookup_concurrency", threads,
            "timeout_ms", timeoutMs);
    return stores.open(files, clock, settings);
  }

  /** A store that has found the disk fast. */
  private LocalFileStore openFast(int threads, int timeoutMs) {
    LocalFileStore store = open(threads, timeoutMs);
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
    return store;
  }

  private void beforeEachLookup(Runnable action) {
    files.before(
        call -> {
          // The search for dead writers asks for sizes as well.
          if (call == Call.SIZE && !Thread.currentThread().getName().startsWith(SWEEP)) {
            askers.add(Thread.currentThread().getName());
            action.run();
          }
        });
  }

  /** Hangs the first look-up from now on. */
  private FaultyFiles.Hang hangOne() {
    FaultyFiles.Hang hang = new FaultyFiles.Hang();
    AtomicBoolean isHeld = new AtomicBoolean();
    beforeEachLookup(
        () -> {
          if (isHeld.compareAndSet(false, true)) {
            hang.enter();
          }
        });
    return hang;
  }

  /** What look-ups pass by fours. It holds a thread as a system call does: for a barrier, a pool starts another one. */
  private static final class Fours implements Runnable {

    // Guarded by this.
    private int came;
    private boolean isOver;

    @Override
    public synchronized void run() {
      int four = came++ / 4;
      notifyAll();
      try {
        while (came / 4 == four && !isOver) {
          wait();
        }
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    /** Lets all pass. */
    synchronized void end() {
      isOver = true;
      notifyAll();
    }
  }

  @Test
  void asksWithAsManyThreadsAsAllowedWhileTheDiskIsNotKnownToBeFast() {
    LocalFileStore store = open(4, 30_000);
    beforeEachLookup(new Fours());
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
    assertThat(askers).hasSize(48);
    assertThat(askers.stream().distinct())
        .containsExactlyInAnyOrder(LOOKUP + 0, LOOKUP + 1, LOOKUP + 2, LOOKUP + 3);
  }

  @Test
  void neverAsksOnTheThreadOfTheCaller() {
    LocalFileStore store = openFast(4, 30_000);
    beforeEachLookup(() -> {});
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
    assertThat(store.lookupPrefix(ids)).isEqualTo(47);
    assertThat(store.durable(ids).cardinality()).isEqualTo(48);
    assertThat(askers).hasSize(144).allMatch(name -> name.startsWith(LOOKUP));
    askers.clear();
    assertThat(store.lookupPrefix(absent)).isEqualTo(-1);
    // One, but for those that a busy machine adds.
    assertThat(askers).hasSizeBetween(1, 8).allMatch(name -> name.startsWith(LOOKUP));
  }

  @Test
  void callsMoreThreadsWhenTheDiskTurnsOutSlow() {
    LocalFileStore store = openFast(4, 30_000);
    AtomicInteger asked = new AtomicInteger();
    Fours fours = new Fours();
    beforeEachLookup(
        () -> {
          if (asked.incrementAndGet() <= 16) {
            clock.advance(Duration.ofMillis(1));
          } else {
            fours.run();
          }
        });
    assertThat(store.lookup(ids).cardinality()).isEqualTo(48);
    assertThat(askers).hasSize(48);
    assertThat(askers.stream().distinct())
        .containsExactlyInAnyOrder(LOOKUP + 0, LOOKUP + 1, LOOKUP + 2, LOOKUP + 3);
  }

  @Test
  void stopsAtTheFirstMiss() {
    BlockIds some = BlockIds.ofHex(List.of(ids.hex(0), ids.hex(1), ids.hex(2)));
    LocalFileStore store = open(4, 30_000);
    beforeEachLookup(() -> clock.advance(Duration.ofMillis(1)));
    assertThat(store.lookupPrefix(some)).isEqualTo(2);
    String[] mixed = new String[absent.size()];
    for (int i = 0; i < mixed.length; i++) {
      mixed[i] = i == 20 ? absent.hex(i) : ids.hex(i % 48);
    }
    askers.clear();
    // The four go in step, so that none is far ahead when one of them finds the miss.
    Fours fours = new Fours();
    beforeEachLookup(fours);
    assertThat(store.lookupPrefix(BlockIds.ofHex(mixed))).isEqualTo(19);
    // Threads that come now, or wait, go on.
    fours.end();
    assertThat(askers).as("with those begun meanwhile").hasSizeBetween(21, 27);
  }

  @Test
  void blocksNoCallerWhenTheDiskHangsAndRecovers() throws Exception {
    LocalFileStore store = open(2, 200);
    beforeEachLookup(hang::enter);
    assertThat(store.lookup(ids)).isEqualTo(new BitSet());
    assertThat(stores.metrics.count("local_lookup_expiries")).isEqualTo(1);
    assertThat(store.lookupPrefix(ids)).isEqualTo(-1);
    assertThat(stores.metrics.count("local_lookup_expiries")).isEqualTo(2);
    assertThat(askers).as("both threads hang").hasSizeLessThanOrEqualTo(2);
    hang.end();
    Waiting.until("prefixes are found again", () -> store.lookupPrefix(ids) == 47);
    Waiting.until("all are found again", () -> store.lookup(ids).cardinality() == 48);
  }

  @Test
  void goesRoundAThreadThatHangs() throws Exception {
    LocalFileStore store = openFast(2, 30_000);
    FaultyFiles.Hang one = hangOne();
    AtomicReference<BitSet> late = new AtomicReference<>();
    Thread caller = Thread.ofPlatform().start(() -> late.set(store.lookup(ids)));
    one.awaitHeld(1);
    assertThat(store.lookupPrefix(ids)).as("asked by the other thread").isEqualTo(47);
    Waiting.until("the other thread helps the caller too", () -> askers.size() == 96);
    one.end();
    caller.join();
    assertThat(late.get().cardinality()).isEqualTo(48);
    assertThat(stores.metrics.count("local_lookup_expiries")).isZero();
  }

  @Test
  void losesOnlyTheBlockThatIsNotAnswered() {
    LocalFileStore store = openFast(2, 1000);
    FaultyFiles.Hang one = hangOne();
    // Which of the first two it is depends on which thread comes first.
    assertThat(store.lookup(ids).cardinality()).isEqualTo(47);
    assertThat(stores.metrics.count("local_lookup_expiries")).isEqualTo(1);
    one.end();
  }

  @Test
  void keepsTheInterruptOfACallerThatWaits() {
    LocalFileStore store = open(2, 30_000);
    beforeEachLookup(hang::enter);
    Thread.currentThread().interrupt();
    assertThat(store.lookup(ids)).isEqualTo(new BitSet());
    assertThat(Thread.interrupted()).isTrue();
    hang.end();
  }

  @Test
  void closesWhileACallerWaitsForADiskThatHangs() throws Exception {
    LocalFileStore store = open(2, 30_000);
    beforeEachLookup(hang::enter);
    AtomicReference<BitSet> answer = new AtomicReference<>();
    Thread caller = Thread.ofPlatform().start(() -> answer.set(store.lookup(ids)));
    hang.awaitHeld(2);
    store.close();
    caller.join();
    assertThat(answer.get()).isEqualTo(new BitSet());
    hang.end();
  }
}

package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.SharedWorker;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.TestProcess;
import ucm.testkit.fault.MemoryStore;

/**
 * Four processes that share a buffer under mixed load, one of which is killed at a random moment, again
 * and again: the others go on, every loaded byte is compared, and afterwards nothing is left. {@code
 * -Ducm.kills=200} kills more often than the default.
 */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
final class SharedKillTest {

  private static final int KILLS = Integer.getInteger("ucm.kills", 16);
  private static final int WORKERS = 4;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final String NAME = "kill";

  /** A worker whose lines are read by a thread of its own. */
  private static final class Worker {

    final TestProcess process;
    // Guarded by this.
    private int operations;
    private String last = "";

    Worker(long seed) throws IOException {
      process = new TestProcess(SharedWorker.class, Segments.id(NAME), "" + seed);
      Thread _ = Thread.ofPlatform().daemon().start(this::read);
    }

    private void read() {
      try {
        for (String line = process.line(); line != null; line = process.line()) {
          synchronized (this) {
            operations += line.equals("op") ? 1 : 0;
            // A line cut off by the kill is no complaint.
            last = line.equals("op") ? last : last + line + "\n";
            notifyAll();
          }
        }
      } catch (IOException e) {
        throw new AssertionError(e);
      }
    }

    synchronized int operations() {
      return operations;
    }

    synchronized String complaints() {
      return last;
    }

    synchronized void awaitOperations(int wanted) throws InterruptedException {
      await(() -> operations >= wanted, "go on");
    }

    synchronized void awaitIdle() throws InterruptedException {
      await(() -> last.equals("idle\n"), "end its work");
    }

    private void await(BooleanSupplier reached, String what) throws InterruptedException {
      long deadline = System.nanoTime() + PATIENCE.toNanos();
      while (!reached.getAsBoolean()) {
        long left = deadline - System.nanoTime();
        assertThat(left).as("a survivor should %s; it said %s", what, last).isPositive();
        assertThat(last).doesNotContain("WRONG").doesNotContain("Exception");
        TimeUnit.NANOSECONDS.timedWait(this, left);
      }
    }
  }

  private final List<Worker> workers = new ArrayList<>();

  @AfterEach
  void killsAll() {
    for (Worker worker : workers) {
      worker.process.kill();
    }
  }

  @Test
  void survivorsGoOnWhenOneOfFourIsKilled() throws Exception {
    long seed = Long.getLong("ucm.seed", System.nanoTime());
    Random random = new Random(seed);
    long workerSeed = seed;
    for (int i = 0; i < WORKERS; i++) {
      workers.add(new Worker(workerSeed++));
    }
    for (int kill = 0; kill < KILLS; kill++) {
      int victim = random.nextInt(WORKERS);
      // The others die while they start or attach.
      if (random.nextInt(4) > 0) {
        workers.get(victim).awaitOperations(1);
      }
      for (long spins = random.nextInt(1_000_000); spins > 0; spins--) {
        Thread.onSpinWait();
      }
      workers.get(victim).process.kill();
      assertThat(workers.get(victim).complaints()).as("seed %d", seed).isEmpty();
      workers.set(victim, new Worker(workerSeed++));
      for (Worker survivor : workers) {
        if (survivor.operations() > 0) {
          survivor.awaitOperations(survivor.operations() + 2);
        }
      }
    }
    for (Worker worker : workers) {
      worker.awaitOperations(1);
      worker.process.tell("stop");
    }
    for (Worker worker : workers) {
      worker.awaitIdle();
    }
    requireNothingHeld(seed);
    for (Worker worker : workers) {
      worker.process.tell("exit");
      assertThat(worker.process.exitCode()).as(worker.complaints()).isZero();
    }
    assertThat(Segments.path(NAME)).as("segment, seed %d", seed).doesNotExist();
  }

  /** Joins the idle workers and looks at the whole segment. */
  private static void requireNothingHeld(long seed) throws Exception {
    assertThat(Files.exists(Segments.path(NAME))).isTrue();
    try (TestCache cache =
        new TestCache(
            SharedWorker.LAYOUT,
            new MemoryStore(new MemoryStore.Volume()),
            0,
            SharedWorker.settings(Segments.id(NAME)))) {
      SharedPool pool = (SharedPool) cache.pool();
      // Slots that a dead one was filling stay out of use for a while, and a survivor that clears
      // up
      // takes the locks for a moment.
      long deadline = System.nanoTime() + 3 * SegmentOwners.QUARANTINE_NANOS;
      int held = pool.referencedAnywhere() + pool.locked();
      while (held > 0 && System.nanoTime() < deadline) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(50));
        held = pool.referencedAnywhere() + pool.locked();
      }
      assertThat(held).as("slots referred to and stripes locked, seed %d", seed).isZero();
    }
  }
}

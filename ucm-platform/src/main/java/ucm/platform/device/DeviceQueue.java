package ucm.platform.device;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreClosedException;
import ucm.device.DeviceException;
import ucm.device.DeviceStream;
import ucm.platform.thread.CpuAffinity;
import ucm.platform.thread.ThreadEnd;

/**
 * Copies shards between slots and memory of a device, in one direction.
 *
 * <p>Each thread owns a stream. It queues some runs with it before it waits for the first of them, so
 * that the device goes from one run to the next without a pause; that is why it waits for marks in the
 * stream and not for the stream. Directions do not share streams: a dump that waits for the engine's
 * computation must not hold up loads.
 *
 * <p>A run of which a call failed ends as failed when everything queued before is done. When that cannot
 * be found out either, the device is lost: its slots are kept back for ever, as a late copy might land in
 * them.
 */
public final class DeviceQueue {

  private static final Logger LOG = LoggerFactory.getLogger(DeviceQueue.class);
  private static final int DEPTH = 4;
  private static final Duration START_JOIN = Duration.ofSeconds(5);

  private final EngineDevice device;
  private final CpuAffinity affinity;
  private final SlotMemory memory;
  private final List<Thread> threads = new ArrayList<>();
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  // Guarded by lock.
  private final ArrayDeque<DeviceBatch> waiting = new ArrayDeque<>();
  private boolean closed;

  /**
   * Starts the threads.
   *
   * @param role names them: {@code ucm-<role>-<n>}
   * @throws DeviceException when the device does not give all streams; none is left then
   */
  DeviceQueue(
      String role, int count, EngineDevice device, SlotMemory memory, CpuAffinity affinity) {
    this.device = device;
    this.memory = memory;
    this.affinity = affinity;
    Thread.Builder newThreads = Thread.ofPlatform().daemon().name("ucm-" + role + "-", 0);
    List<CompletableFuture<Void>> started = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      CompletableFuture<Void> up = new CompletableFuture<>();
      started.add(up);
      threads.add(newThreads.start(() -> run(up)));
    }
    try {
      CompletableFuture.allOf(started.toArray(CompletableFuture<?>[]::new)).join();
    } catch (CompletionException e) {
      close(START_JOIN);
      throw e.getCause() instanceof RuntimeException fault ? fault : new IllegalStateException(e);
    }
  }

  /**
   * Takes a batch of which all shards are there.
   *
   * @param runs in how many runs it is copied
   */
  public void submit(DeviceBatch batch, int runs) {
    lock.lock();
    try {
      if (closed) {
        throw new StoreClosedException(device.stage());
      }
      waiting.add(batch);
      batch.queued = true;
      for (int run = Math.min(runs, threads.size()); run > 0; run--) {
        work.signal();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Takes a shard that is in a slot now; those that come while the threads are busy are copied together.
   *
   * @return false when the queue is closed, and the shard stays with the caller
   */
  public boolean add(DeviceBatch batch, int shard, int slot) {
    lock.lock();
    try {
      if (closed) {
        return false;
      }
      batch.arrive(shard, slot);
      if (!batch.queued) {
        waiting.add(batch);
        batch.queued = true;
      }
      work.signal();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /**
   * Stops taking shards, lets the threads copy what was taken, and joins them.
   *
   * @return false when some thread still runs after the timeout
   */
  boolean close(Duration timeout) {
    lock.lock();
    try {
      closed = true;
      work.signalAll();
    } finally {
      lock.unlock();
    }
    long end = System.nanoTime() + timeout.toNanos();
    return threads.stream()
        .allMatch(thread -> ThreadEnd.await(thread, Duration.ofNanos(end - System.nanoTime())));
  }

  private void run(CompletableFuture<Void> up) {
    DeviceStream stream;
    try {
      affinity.applyToThisThread();
      stream = device.stream(DEPTH);
    } catch (RuntimeException | Error e) {
      up.completeExceptionally(e);
      return;
    }
    try (stream) {
      up.complete(null);
      new Pump(stream).run();
    }
  }

  /** What one thread has under way: a ring of runs, in the order in which they were queued. */
  private final class Pump {

    private final DeviceStream stream;
    private final DeviceCopies copies;
    private final @Nullable DeviceBatch[] batches = new DeviceBatch[DEPTH];
    private final int[] froms = new int[DEPTH];
    private final int[] tos = new int[DEPTH];
    private final boolean[] marked = new boolean[DEPTH];
    private final @Nullable Throwable[] faults = new Throwable[DEPTH];
    private int first;
    private int underWay;

    private Pump(DeviceStream stream) {
      this.stream = stream;
      this.copies = new DeviceCopies(memory, stream);
    }

    private void run() {
      while (true) {
        int next = (first + underWay) % DEPTH;
        if (underWay < DEPTH && take(next)) {
          start(next);
          underWay++;
        } else if (underWay > 0) {
          finish(first);
          first = (first + 1) % DEPTH;
          underWay--;
        } else {
          return;
        }
      }
    }

    /** Takes the next run; waits for one when nothing is under way, and for nothing else. */
    private boolean take(int at) {
      lock.lock();
      try {
        while (waiting.isEmpty()) {
          if (closed || underWay > 0) {
            return false;
          }
          work.awaitUninterruptibly();
        }
        DeviceBatch batch = waiting.element();
        batches[at] = batch;
        froms[at] = batch.taken;
        tos[at] = batch.take();
        if (!batch.queued) {
          waiting.remove();
        }
        return true;
      } finally {
        lock.unlock();
      }
    }

    private void start(int at) {
      DeviceBatch batch = Objects.requireNonNull(batches[at]);
      faults[at] = null;
      marked[at] = false;
      try {
        batch.begin(froms[at], tos[at]);
        long event = batch.event();
        if (event != 0) {
          stream.waitFor(event);
        }
        batch.queue(copies, froms[at], tos[at]);
        copies.flush();
      } catch (RuntimeException | Error e) {
        copies.clear();
        faults[at] = e;
      }
      try {
        stream.mark(at);
        marked[at] = true;
      } catch (DeviceException e) {
        failed(at, e);
      }
    }

    /** Keeps the first thing that went wrong with a run. */
    private void failed(int at, Throwable fault) {
      faults[at] = faults[at] == null ? fault : faults[at];
    }

    private void finish(int at) {
      DeviceBatch batch = Objects.requireNonNull(batches[at]);
      batches[at] = null;
      boolean done = isDone(at);
      Throwable fault = faults[at];
      try {
        if (fault != null) {
          batch.fail(froms[at], tos[at], fault, done);
        }
        batch.end(froms[at], tos[at]);
      } catch (RuntimeException | Error e) {
        // The batch broke its contract; the thread must live on for the others.
        LOG.error("{}: a run of {} threw", device.stage(), batch, e);
      }
    }

    /** Waits until the device is done with a run; false when that cannot be found out. */
    private boolean isDone(int at) {
      if (marked[at]) {
        try {
          stream.await(at);
          return true;
        } catch (DeviceException e) {
          failed(at, e);
        }
      }
      try {
        stream.awaitAll();
        return true;
      } catch (DeviceException e) {
        failed(at, e);
        device.lost(e);
        return false;
      }
    }
  }
}

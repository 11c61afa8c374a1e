package ucm.platform.device;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.stream.IntStream;
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
  // Guarded by this, which is notified of work, as is what follows.
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
  public synchronized void submit(DeviceBatch batch, int runs) {
    if (closed) {
      throw new StoreClosedException(device.stage());
    }
    waiting.add(batch);
    batch.queued = true;
    for (int run = Math.min(runs, threads.size()); run > 0; run--) {
      notify();
    }
  }

  /**
   * Takes a shard that is in a slot now; those that come while the threads are busy are copied together.
   *
   * @return false when the queue is closed, and the shard stays with the caller
   */
  public synchronized boolean add(DeviceBatch batch, int shard, int slot) {
    if (closed) {
      return false;
    }
    batch.arrive(shard, slot);
    if (!batch.queued) {
      waiting.add(batch);
      batch.queued = true;
    }
    notify();
    return true;
  }

  /**
   * Stops taking shards, lets the threads copy what was taken, and joins them.
   *
   * @return false when some thread still runs after the timeout
   */
  boolean close(Duration timeout) {
    synchronized (this) {
      closed = true;
      notifyAll();
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

  /** Takes the next run; false when there is none, and none to wait for. */
  private synchronized boolean take(Run run, boolean mayWait) {
    while (waiting.isEmpty()) {
      if (closed || !mayWait) {
        return false;
      }
      try {
        wait();
      } catch (InterruptedException e) {
        // Only close ends the threads.
      }
    }
    DeviceBatch batch = waiting.element();
    run.batch = batch;
    run.from = batch.taken;
    run.to = batch.take();
    if (!batch.queued) {
      waiting.remove();
    }
    return true;
  }

  /** A run of a batch, with the mark of the stream that stands behind it. */
  private static final class Run {

    private final int mark;
    private @Nullable DeviceBatch batch;
    private int from;
    private int to;
    private boolean isMarked;
    // The first thing that went wrong.
    private @Nullable Throwable fault;

    private Run(int mark) {
      this.mark = mark;
    }

    private void failed(Throwable cause) {
      fault = fault == null ? cause : fault;
    }
  }

  /** What one thread has under way, in the order in which it was queued. */
  private final class Pump {

    private final DeviceStream stream;
    private final DeviceCopies copies;
    private final ArrayDeque<Run> underWay = new ArrayDeque<>(DEPTH);
    private final ArrayDeque<Run> unused = new ArrayDeque<>(DEPTH);

    private Pump(DeviceStream stream) {
      this.stream = stream;
      this.copies = new DeviceCopies(memory, stream);
      IntStream.range(0, DEPTH).mapToObj(Run::new).forEach(unused::add);
    }

    private void run() {
      while (true) {
        Run next = unused.peek();
        if (next != null && take(next, underWay.isEmpty())) {
          start(unused.remove());
          underWay.add(next);
        } else if (!underWay.isEmpty()) {
          Run first = underWay.remove();
          finish(first);
          unused.add(first);
        } else {
          return;
        }
      }
    }

    private void start(Run run) {
      DeviceBatch batch = Objects.requireNonNull(run.batch);
      run.fault = null;
      run.isMarked = false;
      try {
        batch.begin(run.from, run.to);
        long event = batch.event();
        if (event != 0) {
          stream.waitFor(event);
        }
        batch.queue(copies, run.from, run.to);
        copies.flush();
      } catch (RuntimeException | Error e) {
        copies.clear();
        run.failed(e);
      }
      try {
        stream.mark(run.mark);
        run.isMarked = true;
      } catch (DeviceException e) {
        run.failed(e);
      }
    }

    private void finish(Run run) {
      DeviceBatch batch = Objects.requireNonNull(run.batch);
      run.batch = null;
      boolean done = isDone(run);
      try {
        if (run.fault != null) {
          batch.fail(run.from, run.to, run.fault, done);
        }
        batch.end(run.from, run.to);
      } catch (RuntimeException | Error e) {
        // The batch broke its contract; the thread must live on for the others.
        LOG.error("{}: a run of {} threw", device.stage(), batch, e);
      }
    }

    /** Waits until the device is done with a run; false when that cannot be found out. */
    private boolean isDone(Run run) {
      if (run.isMarked) {
        try {
          stream.await(run.mark);
          return true;
        } catch (DeviceException e) {
          run.failed(e);
        }
      }
      try {
        stream.awaitAll();
        return true;
      } catch (DeviceException e) {
        run.failed(e);
        device.lost(e);
        return false;
      }
    }
  }
}

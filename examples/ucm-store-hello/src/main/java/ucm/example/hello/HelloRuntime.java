package ucm.example.hello;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreLife;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/** An open store: a bounded queue of tasks, and threads that move the shards of one task each. */
final class HelloRuntime {

  private final HelloConfig config;
  private final StoreLife life;
  private final LongSupplier clock;
  private final Counter loadedBytes;
  private final Counter dumpedBytes;
  private final BlockFiles files;
  private final ThreadPoolExecutor workers;
  private final AtomicLong taskNumbers = new AtomicLong();
  private final Set<Task> dumps = ConcurrentHashMap.newKeySet();
  // Guarded by this, as is what follows.
  private final List<Thread> threads = new ArrayList<>();
  private long failedBlocks;
  private Throwable firstFault;

  HelloRuntime(HelloConfig config, StoreContext context, StoreLife life) {
    this.config = config;
    this.life = life;
    clock = context.nanoClock();
    loadedBytes = context.metrics().counter("hello_loaded_bytes", "Bytes read from files");
    dumpedBytes = context.metrics().counter("hello_dumped_bytes", "Bytes written to files");
    files = new BlockFiles(config);
    workers =
        new ThreadPoolExecutor(
            config.threads(),
            config.threads(),
            0,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(config.queueDepth()),
            this::newThread);
  }

  private synchronized Thread newThread(Runnable work) {
    Thread thread = new Thread(work, "ucm-hello-io-" + threads.size());
    threads.add(thread);
    return thread;
  }

  BitSet lookup(BlockIds ids) {
    BitSet found = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, files.has(ids, i));
    }
    return found;
  }

  BitSet remove(BlockIds ids) {
    BitSet gone = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      gone.set(i, files.remove(ids, i));
    }
    return gone;
  }

  int lookupPrefix(BlockIds ids) {
    int i = 0;
    while (i < ids.size() && files.has(ids, i)) {
      i++;
    }
    return i - 1;
  }

  Task start(Transfer transfer, boolean load) {
    if (config.scheduler() || !transfer.isHost() || !transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "Hello moves host memory, as a worker, cut as %s; asked for %s cut as %s, device_id %s"
              .formatted(
                  config.layout(),
                  transfer,
                  transfer.layout(),
                  config.scheduler() ? "-1, the scheduler" : "of a worker"));
    }
    TransferTask task = new TransferTask(taskNumbers.incrementAndGet(), transfer);
    long deadline = clock.getAsLong() + config.timeoutNanos();
    if (!load) {
      dumps.add(task);
      task.whenTerminal(() -> noteFailures(task));
    }
    try {
      workers.execute(() -> move(task, load, deadline));
    } catch (RejectedExecutionException e) {
      dumps.remove(task);
      life.requireOpen();
      throw new QueueFullException("Hello", config.queueDepth(), "waiting_queue_depth");
    }
    return task;
  }

  private void move(TransferTask task, boolean load, long deadline) {
    Transfer transfer = task.transfer();
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      ShardOutcome outcome = ShardOutcome.EXPIRED;
      Exception fault = null;
      if (clock.getAsLong() - deadline < 0) {
        try {
          outcome = load ? files.read(transfer, shard) : files.write(transfer, shard);
        } catch (IOException | RuntimeException e) {
          outcome = ShardOutcome.FAILED;
          fault = e;
        }
      }
      if (outcome == ShardOutcome.OK) {
        (load ? loadedBytes : dumpedBytes).add(transfer.layout().shardSize());
      }
      // After this the shard's memory is the caller's again.
      task.end(shard, outcome, fault);
    }
  }

  private synchronized void noteFailures(TransferTask dump) {
    TransferResult result = dump.result();
    failedBlocks += result.failedBlocks().size();
    firstFault = firstFault == null ? result.cause() : firstFault;
    dumps.remove(dump);
    notifyAll();
  }

  /** A caller that sees a dump end may be a moment ahead of the thread that notes what failed. */
  private synchronized void awaitNoted(Task dump) throws InterruptedException {
    while (dumps.contains(dump)) {
      wait();
    }
  }

  FlushResult flush(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + timeout.toNanos();
    long pending = 0;
    for (Task task : List.copyOf(dumps)) {
      try {
        task.await(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        awaitNoted(task);
      } catch (StoreTimeoutException e) {
        pending++;
      }
    }
    synchronized (this) {
      FlushResult result =
          new FlushResult(pending + files.unfinished(), BlockIds.empty(), failedBlocks, firstFault);
      failedBlocks = 0;
      firstFault = null;
      return result;
    }
  }

  /** Lets what was accepted end, which takes the deadline of a task at the most. */
  void close() {
    workers.shutdown();
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = awaitThreads();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    files.close();
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean awaitThreads() throws InterruptedException {
    // First: a thread that the pool has made and not started yet is not alive.
    boolean ended = workers.awaitTermination(1, TimeUnit.DAYS);
    for (Thread thread : madeThreads()) {
      // A pool that is terminated may still have a thread that is about to end.
      thread.join();
    }
    return ended;
  }

  private synchronized List<Thread> madeThreads() {
    return List.copyOf(threads);
  }
}

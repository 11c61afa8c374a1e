package ucm.example.valkey;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
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

/**
 * An open store. A block is a hash in the server, a field for each shard: it is whole when it has as
 * many fields as the layout has shards, and the server evicts or expires it as one thing.
 *
 * <p>Nothing waits between commands: those of all blocks of a transfer are sent one after the other,
 * within the window, and the client's threads end the shards as answers come.
 */
final class ValkeyRuntime {

  private static final int PREFIX_STEP = 64;

  private final ValkeyConfig config;
  private final StoreLife life;
  private final Counter loadedBytes;
  private final Counter dumpedBytes;
  private final ServerLink link;
  private final MoveWindow window;
  private final AtomicLong taskNumbers = new AtomicLong();
  private final AtomicInteger shardsUnderWay = new AtomicInteger();
  private final Set<TransferTask> dumps = ConcurrentHashMap.newKeySet();
  private final Set<TransferTask> loads = ConcurrentHashMap.newKeySet();
  private final Set<String> unfinished = ConcurrentHashMap.newKeySet();
  private final ReadWriteLock starting = new ReentrantReadWriteLock();
  // Guarded by this.
  private long failedBlocks;
  private Throwable firstFault;

  ValkeyRuntime(ValkeyConfig config, StoreContext context, StoreLife life) {
    this.config = config;
    this.life = life;
    loadedBytes = context.metrics().counter("valkey_loaded_bytes", "Bytes fetched from servers");
    dumpedBytes = context.metrics().counter("valkey_dumped_bytes", "Bytes sent to servers");
    link = new ServerLink(config);
    window = new MoveWindow(config.windowBytes(), this::send);
  }

  private String key(BlockIds ids, int i) {
    // The layout is part of the name: a block of another layout is a miss.
    return config.prefix()
        + ":"
        + Integer.toHexString(config.layout().hashCode())
        + ":"
        + ids.hex(i);
  }

  private boolean isWhole(long shards) {
    return shards == config.layout().shardCount();
  }

  private List<String> keys(BlockIds ids) {
    return IntStream.range(0, ids.size()).mapToObj(i -> key(ids, i)).toList();
  }

  BitSet lookup(BlockIds ids) {
    // What cannot be asked for is not there.
    long[] shards = ask(keys(ids), link::shardsOf, 0);
    BitSet found = new BitSet();
    for (int i = 0; i < shards.length; i++) {
      found.set(i, isWhole(shards[i]));
    }
    return found;
  }

  BitSet remove(BlockIds ids) {
    List<String> keys = keys(ids);
    keys.forEach(unfinished::remove);
    long[] removed = ask(keys, link::remove, -1);
    BitSet gone = new BitSet();
    for (int i = 0; i < removed.length; i++) {
      gone.set(i, removed[i] >= 0);
    }
    return gone;
  }

  /** Asks for all keys at once; of those that no answer came for, gives {@code none}. */
  private long[] ask(
      List<String> keys, Function<String, CompletionStage<Long>> question, long none) {
    List<CompletableFuture<Long>> answers =
        keys.stream().map(key -> question.apply(key).toCompletableFuture()).toList();
    long end = System.nanoTime() + config.timeout().toNanos();
    return answers.stream().mapToLong(answer -> answer(answer, end, none)).toArray();
  }

  private static long answer(CompletableFuture<Long> answer, long end, long none) {
    try {
      return answer.get(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
    } catch (ExecutionException | TimeoutException e) {
      return none;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return none;
    }
  }

  int lookupPrefix(BlockIds ids) {
    int from = 0;
    while (from < ids.size()) {
      int step = Math.min(PREFIX_STEP, ids.size() - from);
      int run = lookup(ids.slice(from, from + step)).nextClearBit(0);
      from += run;
      if (run < step) {
        break;
      }
    }
    return from - 1;
  }

  Task start(Transfer transfer, boolean load) {
    starting.readLock().lock();
    try {
      life.requireOpen();
      return startAll(transfer, load);
    } finally {
      starting.readLock().unlock();
    }
  }

  private Task startAll(Transfer transfer, boolean load) {
    if (config.scheduler() || !transfer.isHost() || !transfer.layout().equals(config.layout())) {
      throw new StoreException(
          "Valkey moves host memory, as a worker, cut as %s; asked for %s cut as %s, device_id %s"
              .formatted(
                  config.layout(),
                  transfer,
                  transfer.layout(),
                  config.scheduler() ? "-1, the scheduler" : "of a worker"));
    }
    int shards = transfer.shardCount();
    if (shardsUnderWay.addAndGet(shards) > config.queueDepth()) {
      shardsUnderWay.addAndGet(-shards);
      throw new QueueFullException("Valkey shards", config.queueDepth(), "running_queue_depth");
    }
    TransferTask task = new TransferTask(taskNumbers.incrementAndGet(), transfer);
    (load ? loads : dumps).add(task);
    // Who has waited for one task may hand in the next.
    task.beforeTerminal(() -> shardsUnderWay.addAndGet(-shards));
    task.whenTerminal(
        () -> {
          if (load) {
            loads.remove(task);
          } else {
            noteFailures(task);
          }
        });
    long deadline = System.nanoTime() + config.timeout().toNanos();
    int from = 0;
    while (from < shards) {
      int end = from + 1;
      while (end < shards && sameBlock(transfer.ids(), from, end)) {
        end++;
      }
      startRun(task, from, end, load, deadline);
      from = end;
    }
    return task;
  }

  private static boolean sameBlock(BlockIds ids, int i, int j) {
    return ids.high(i) == ids.high(j) && ids.low(i) == ids.low(j);
  }

  /** Asks whether the block is there: then nothing is dumped, and if not, nothing is loaded. */
  private void startRun(TransferTask task, int from, int end, boolean load, long deadline) {
    String key = key(task.transfer().ids(), from);
    if (!load && end - from < config.layout().shardCount()) {
      unfinished.add(key);
    }
    link.shardsOf(key)
        .whenComplete(
            (found, fault) -> {
              for (int shard = from; shard < end; shard++) {
                ShardMove move = new ShardMove(task, shard, key, load, deadline);
                if (fault != null) {
                  move.end(outcome(fault), fault);
                } else if (load && !isWhole(found)) {
                  move.end(ShardOutcome.MISSING, null);
                } else if (!load && isWhole(found)) {
                  unfinished.remove(key);
                  move.end(ShardOutcome.OK, null);
                } else {
                  window.add(move);
                }
              }
            });
  }

  private void send(ShardMove move) {
    link.move(move)
        .whenComplete(
            (_, fault) -> {
              if (fault != null) {
                move.end(outcome(fault), fault);
              } else if (move.isLoad()) {
                move.end(move.loaded(), null);
                loadedBytes.add(config.layout().shardSize());
              } else {
                move.end(ShardOutcome.OK, null);
                dumpedBytes.add(config.layout().shardSize());
              }
              window.ended(move);
            });
    if (!move.isLoad() && config.ttlSeconds() > 0) {
      link.expire(move.key(), config.ttlSeconds());
    }
  }

  private static ShardOutcome outcome(Throwable fault) {
    if (fault instanceof RedisCommandTimeoutException) {
      return ShardOutcome.EXPIRED;
    }
    // The server is at its maxmemory and may evict nothing.
    boolean full =
        fault instanceof RedisCommandExecutionException
            && String.valueOf(fault.getMessage()).startsWith("OOM");
    return full ? ShardOutcome.REFUSED : ShardOutcome.FAILED;
  }

  private synchronized void noteFailures(TransferTask dump) {
    TransferResult result = dump.result();
    failedBlocks += result.failedBlocks().size();
    firstFault = firstFault == null ? result.cause() : firstFault;
    dumps.remove(dump);
    notifyAll();
  }

  /** A caller that sees a dump end may be a moment ahead of the thread that notes what failed. */
  private synchronized void awaitNoted(TransferTask dump) throws InterruptedException {
    while (dumps.contains(dump)) {
      wait();
    }
  }

  FlushResult flush(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + timeout.toNanos();
    long pending = 0;
    for (TransferTask task : List.copyOf(dumps)) {
      try {
        task.await(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
        awaitNoted(task);
      } catch (StoreTimeoutException e) {
        pending++;
      }
    }
    dropFinished();
    synchronized (this) {
      FlushResult result =
          new FlushResult(pending + unfinished.size(), BlockIds.empty(), failedBlocks, firstFault);
      failedBlocks = 0;
      firstFault = null;
      return result;
    }
  }

  private void dropFinished() {
    List<String> keys = List.copyOf(unfinished);
    long[] shards = ask(keys, link::shardsOf, 0);
    for (int i = 0; i < shards.length; i++) {
      if (isWhole(shards[i])) {
        unfinished.remove(keys.get(i));
      }
    }
  }

  /** Lets what was accepted end, which takes the deadline of a task at the most. */
  void close() {
    // A thread in start has its task among those under way when this lock is ours.
    starting.writeLock().lock();
    starting.writeLock().unlock();
    Stream.concat(loads.stream(), dumps.stream()).forEach(ValkeyRuntime::awaitEnd);
    link.close();
  }

  /** Waits in a way that no interrupt cuts short. */
  private static void awaitEnd(TransferTask task) {
    CompletableFuture<Void> end = new CompletableFuture<>();
    task.whenTerminal(() -> end.complete(null));
    end.join();
  }
}

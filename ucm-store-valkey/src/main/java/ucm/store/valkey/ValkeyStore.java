package ucm.store.valkey;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisCommandTimeoutException;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreName;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * Keeps blocks in Valkey, Redis or a cluster of them. A block is a hash in the server, a field for each
 * shard: it is whole when it has as many fields as the layout has shards, and the server evicts or
 * expires it as one thing.
 *
 * <p>Nothing waits between commands: those of all blocks of a transfer are sent one after the other,
 * within the window, and the client's threads end the shards as answers come.
 */
@StoreName("Valkey")
public final class ValkeyStore extends AbstractStore {

  /** Blocks that were dumped in parts, and may lack shards. */
  private final Set<BlockIds> unfinished = ConcurrentHashMap.newKeySet();

  /** What is there while the store is open. */
  private record OpenServers(
      Counter loadedBytes,
      Counter dumpedBytes,
      LongSupplier clock,
      MoveWindow window,
      ServerLink link) {}

  private @Nullable StoreConfig config;
  private volatile @Nullable OpenServers servers;

  /** A store that is not configured. */
  public ValkeyStore() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return ValkeyConfig.KEYS;
  }

  @Override
  protected void doConfigure(StoreConfig values) {
    config = values;
    ValkeyConfig.check(values);
  }

  @Override
  protected void doOpen(StoreContext context) {
    Counter loaded = context.metrics().counter("valkey_loaded_bytes", "Bytes fetched from servers");
    Counter dumped = context.metrics().counter("valkey_dumped_bytes", "Bytes sent to servers");
    MoveWindow window = new MoveWindow((long) value(ValkeyConfig.WINDOW) << 20, this::send);
    ServerLink link = new ServerLink(Objects.requireNonNull(config), timeout(), this::newThreads);
    servers = new OpenServers(loaded, dumped, context.nanoClock(), window, link);
  }

  private OpenServers servers() {
    return Objects.requireNonNull(servers);
  }

  private String key(BlockIds ids, int i) {
    // The layout is part of the name: a block of another layout is a miss.
    String layout = Integer.toHexString(layout().hashCode());
    return value(ValkeyConfig.PREFIX) + ":" + layout + ":" + ids.hex(i);
  }

  private boolean isWhole(long shards) {
    return shards == layout().shardCount();
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    // What cannot be asked for is not there.
    long[] shards = ask(ids, servers().link::shardsOf, 0);
    BitSet found = new BitSet();
    for (int i = 0; i < shards.length; i++) {
      found.set(i, isWhole(shards[i]));
    }
    return found;
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return lookup(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    long[] removed = ask(ids, servers().link::remove, -1);
    BitSet gone = new BitSet();
    for (int i = 0; i < removed.length; i++) {
      unfinished.remove(ids.slice(i, i + 1));
      gone.set(i, removed[i] >= 0);
    }
    return gone;
  }

  /** Asks for all blocks at once; of those that no answer came for, gives {@code none}. */
  private long[] ask(BlockIds ids, Function<String, CompletionStage<Long>> question, long none) {
    List<CompletableFuture<Long>> answers =
        IntStream.range(0, ids.size())
            .mapToObj(i -> question.apply(key(ids, i)).toCompletableFuture())
            .toList();
    long end = System.nanoTime() + timeout().toNanos();
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

  @Override
  protected void doLoad(TransferTask task) {
    start(task);
  }

  @Override
  protected void doDump(TransferTask task) {
    start(task);
  }

  private void start(TransferTask task) {
    BlockIds ids = task.transfer().ids();
    int from = 0;
    while (from < ids.size()) {
      int end = from + 1;
      while (end < ids.size() && sameBlock(ids, from, end)) {
        end++;
      }
      startRun(task, from, end);
      from = end;
    }
  }

  private static boolean sameBlock(BlockIds ids, int i, int j) {
    return ids.high(i) == ids.high(j) && ids.low(i) == ids.low(j);
  }

  /** Asks whether the block is there: then nothing is dumped, and if not, nothing is loaded. */
  private void startRun(TransferTask task, int from, int end) {
    BlockIds ids = task.transfer().ids();
    BlockIds id = BlockIds.of(ids.high(from), ids.low(from));
    String key = key(id, 0);
    if (task.isDump() && end - from < layout().shardCount()) {
      unfinished.add(id);
    }
    OpenServers open = servers();
    open.link
        .shardsOf(key)
        .whenComplete(
            (found, fault) -> {
              boolean whole = fault == null && isWhole(found);
              ShardOutcome known = task.isDump() ? ShardOutcome.OK : ShardOutcome.MISSING;
              if (task.isDump() && whole) {
                unfinished.remove(id);
              }
              for (int shard = from; shard < end; shard++) {
                if (fault == null && whole != task.isDump()) {
                  open.window.add(new ShardMove(task, shard, key, open.clock));
                } else if (task.begin(shard)) {
                  task.end(shard, fault == null ? known : outcome(fault), fault);
                }
              }
            });
  }

  private void send(ShardMove move) {
    OpenServers open = servers();
    open.link
        .move(move)
        .whenComplete(
            (_, fault) -> {
              if (fault != null) {
                move.end(outcome(fault), fault);
              } else if (move.isLoad()) {
                move.end(move.loaded(), null);
                open.loadedBytes.add(layout().shardSize());
              } else {
                move.end(ShardOutcome.OK, null);
                open.dumpedBytes.add(layout().shardSize());
              }
              open.window.ended(move);
            });
    int seconds = value(ValkeyConfig.TTL);
    if (!move.isLoad() && seconds > 0) {
      open.link.expire(move.key(), seconds);
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

  @Override
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending) {
    BlockIds ids = BlockIds.ofHex(unfinished.stream().map(id -> id.hex(0)).toList());
    BitSet whole = doLookup(ids);
    for (int i = 0; i < ids.size(); i++) {
      BlockIds id = ids.slice(i, i + 1);
      if (whole.get(i)) {
        unfinished.remove(id);
      } else {
        pending.add(id);
      }
    }
  }

  /** Shards that have begun end by the deadline of their task. */
  @Override
  protected void doClose() {
    for (TransferTask task : openTasks()) {
      CompletableFuture<Void> end = new CompletableFuture<>();
      task.whenTerminal(() -> end.complete(null));
      end.join();
    }
    OpenServers open = servers;
    if (open != null) {
      open.link.close();
    }
  }
}

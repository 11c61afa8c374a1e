package ucm.store.cache;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * A process that shares a buffer and loads, dumps and looks up blocks at random, comparing every byte,
 * until it is told {@code stop}; then it says {@code idle}, and ends when told anything. It says {@code
 * op} each time it has done some, and {@code WRONG} with what went wrong, and ends.
 */
final class SharedWorker {

  static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 8 * 4096);

  /** Fewer than there are blocks, so that they are evicted all the time. */
  static final int FRAMES = 24;

  private static final int BLOCKS = 40;
  private static final int THREADS = 2;
  private static final int OPERATIONS_A_LINE = 10;
  private static final int MOST_SPINS = 1000;
  private static final int MOST_PAUSE_NANOS = 4_000_000;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final TestCache cache;
  private final BlockIds ids = BlockBytes.ids(7, BLOCKS);
  private final AtomicLong operations = new AtomicLong();
  private volatile boolean stopped;

  private SharedWorker(TestCache cache) {
    this.cache = cache;
  }

  /** What a worker is configured with. */
  static Map<String, Object> settings(String uniqueId) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("share_buffer_enable", true);
    settings.put("unique_id", uniqueId);
    settings.put(
        "cache_buffer_capacity_gb", TestCache.gib(LAYOUT, FRAMES * (long) LAYOUT.shardCount()));
    settings.put("timeout_ms", 60_000);
    return settings;
  }

  /** Runs: the unique_id, and a seed. */
  public static void main(String[] arguments) throws Exception {
    PatternBackend backend = new PatternBackend(MOST_SPINS);
    try (TestCache cache = new TestCache(LAYOUT, backend, 0, settings(arguments[0]));
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      new SharedWorker(cache).run(Long.parseLong(arguments[1]), input);
      if (backend.wrong() > 0) {
        fail(backend.wrong() + " dumped shards changed under the writer");
      }
      say("idle");
      String _ = input.readLine();
    }
  }

  private void run(long seed, BufferedReader input) throws Exception {
    say("op");
    List<Future<?>> threads = new ArrayList<>();
    try (ExecutorService pool = Executors.newFixedThreadPool(THREADS)) {
      for (int thread = 0; thread < THREADS; thread++) {
        Random random = new Random(seed * THREADS + thread);
        threads.add(pool.submit(() -> work(random)));
      }
      String _ = input.readLine();
      stopped = true;
      for (Future<?> thread : threads) {
        Object _ = thread.get();
      }
    }
    if (!cache.store.flush(PATIENCE).ok()) {
      fail("flush");
    }
  }

  private void work(Random random) {
    try {
      while (!stopped) {
        step(random);
        if (operations.incrementAndGet() % OPERATIONS_A_LINE == 0) {
          say("op");
        }
        // Four processes that never rest would leave no processor to start another one.
        LockSupport.parkNanos(random.nextInt(MOST_PAUSE_NANOS));
      }
    } catch (InterruptedException | RuntimeException | Error e) {
      fail(e.toString());
    }
  }

  private void step(Random random) throws InterruptedException {
    int first = random.nextInt(BLOCKS);
    BlockIds some = ids.slice(first, Math.min(BLOCKS, first + 1 + random.nextInt(4)));
    switch (random.nextInt(8)) {
      case 0 -> cache.store.prefetch(some);
      case 1 -> {
        int _ = cache.store.lookupPrefix(some);
      }
      case 2, 3 -> dump(random, some);
      default -> load(random, some);
    }
  }

  private void load(Random random, BlockIds some) throws InterruptedException {
    TransferMemory memory = memory(random, some);
    TransferResult result = cache.store.load(memory.transfer()).await(PATIENCE);
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (result.outcome(shard) == ShardOutcome.OK) {
        memory.check(shard);
      } else if (result.outcome(shard) != ShardOutcome.MISSING || isStored(memory, shard)) {
        fail("load of a shard ended " + result);
      }
    }
  }

  private static boolean isStored(TransferMemory memory, int shard) {
    return PatternBackend.has(memory.transfer().ids(), shard);
  }

  private void dump(Random random, BlockIds some) throws InterruptedException {
    TransferMemory memory = memory(random, some);
    TransferResult result = cache.store.dump(memory.fill().transfer()).await(PATIENCE);
    if (!result.ok()) {
      fail("dump ended " + result);
    }
  }

  private static TransferMemory memory(Random random, BlockIds some) {
    if (random.nextBoolean()) {
      return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, some);
    }
    int shard = random.nextInt(LAYOUT.shardCount());
    return TransferMemory.ofShards(LAYOUT, Placement.SCATTERED, some, 0, shard);
  }

  private static void fail(String why) {
    say("WRONG " + why);
    Runtime.getRuntime().halt(1);
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}

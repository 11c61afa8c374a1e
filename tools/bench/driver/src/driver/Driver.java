package driver;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/**
 * Moves blocks through a pipeline by the public API alone, and compares each byte that it loads. Commands
 * on stdin, a line of JSON for each on stdout, as {@code limits.c} has them.
 */
public final class Driver {

  private static final Duration TIMEOUT = Duration.ofSeconds(40);
  private static final long LOOKUP_NANOS = 20_000_000;
  private static final int ROOM_PIECE = 2 << 20;

  private final Map<String, String> options = new HashMap<>();
  private final String folder;
  private final boolean layerwise;
  private final boolean direct;
  private final int blocks;
  private final int taskBlocks;
  private final int inFlight;
  private final int shards;
  private final int tensors;
  private final long tensor;
  private final long roundBytes;
  private final long pauseMicros;
  private final BlockLayout layout;
  private final Payload payload;
  private final Store store;
  private long absent;

  private Driver(String[] words) {
    for (String word : words) {
      int at = word.indexOf('=');
      options.put(word.substring(2, at), word.substring(at + 1));
    }
    folder = options.get("dir");
    layerwise = number("layerwise", 0) != 0;
    direct = number("direct", 0) != 0;
    long block = number("block", 1 << 20);
    long shard = number("shard", block);
    tensor = number("tensor", shard);
    blocks = (int) number("blocks", 64);
    taskBlocks = (int) Math.min(number("task-blocks", 16), blocks);
    inFlight = (int) number("in-flight", 1);
    pauseMicros = number("pause-us", 0);
    shards = (int) (block / shard);
    tensors = (int) (shard / tensor);
    roundBytes = blocks * block;
    layout = BlockLayout.uniform(tensor, shard, block);
    payload = new Payload(number("seed", 1), blocks, shards, tensors, tensor);
    long begin = System.nanoTime();
    store = open(shard, block);
    say(
        "ready",
        0,
        String.format(Locale.ROOT, ",\"open_ms\":%.1f", (System.nanoTime() - begin) / 1e6));
  }

  public static void main(String[] words) throws Exception {
    new Driver(words).serve();
    System.exit(0);
  }

  private Store open(long shard, long block) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("storage_backends", List.of(folder));
    values.put("unique_id", "driver-" + ProcessHandle.current().pid());
    values.put("device_id", 0L);
    values.put("local_rank_size", 1L);
    values.put("tensor_size", tensor);
    values.put("shard_size", shard);
    values.put("block_size", block);
    values.put("io_direct", direct);
    String pipeline = options.getOrDefault("pipeline", "Posix");
    if (pipeline.startsWith("Cache")) {
      values.put("cache_buffer_capacity_gb", (double) number("pool-gb", 1));
    }
    return Pipeline.open(UcmConfig.of(pipeline, values), StoreCatalog.find());
  }

  private void serve() throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      long round = words.length > 1 ? Long.parseLong(words[1]) : 0;
      switch (words[0]) {
        case "dump" -> dump(round);
        case "load" -> load(round);
        case "lookup" -> lookup(round);
        case "quit" -> {
          long begin = System.nanoTime();
          store.close();
          say(
              "quit",
              0,
              String.format(Locale.ROOT, ",\"close_ms\":%.1f", (System.nanoTime() - begin) / 1e6));
          return;
        }
        default -> throw new IllegalArgumentException(line);
      }
    }
  }

  private void dump(long round) throws Exception {
    BlockIds ids = payload.ids(round, blocks);
    payload.fill(ids);
    room();
    long nanos = move(ids, true);
    long begin = System.nanoTime();
    FlushResult flushed = store.flush(TIMEOUT);
    long durable = nanos + System.nanoTime() - begin;
    if (!flushed.ok()) {
      throw new IllegalStateException("flush: " + flushed);
    }
    say("dump", round, rate("wait", nanos) + rate("durable", durable));
  }

  private void load(long round) throws Exception {
    BlockIds ids = payload.ids(round, blocks);
    payload.clear();
    long nanos = move(ids, false);
    say("load", round, rate("load", nanos) + ",\"wrong_blocks\":" + payload.wrong(ids));
  }

  private String rate(String metric, long nanos) {
    return String.format(Locale.ROOT, ",\"%s\":%.3f", metric, (double) roundBytes / nanos);
  }

  private void say(String what, long round, String more) {
    System.out.println(
        "{\"op\":\"" + what + "\",\"r\":" + round + ",\"bytes\":" + roundBytes + more + "}");
    System.out.flush();
  }

  /** Nanoseconds from the first task to the end of the last, without the pauses between them. */
  private long move(BlockIds ids, boolean out) throws InterruptedException {
    Transfer[] tasks = tasks(ids);
    Task[] started = new Task[tasks.length];
    long paused = 0;
    long begin = System.nanoTime();
    for (int i = 0; i < tasks.length + inFlight - 1; i++) {
      if (i < tasks.length) {
        if (pauseMicros > 0) {
          long from = System.nanoTime();
          Thread.sleep(Duration.ofNanos(1_000 * pauseMicros));
          paused += System.nanoTime() - from;
        }
        started[i] = out ? store.dump(tasks[i]) : store.load(tasks[i]);
      }
      int ended = i + 1 - inFlight;
      if (ended >= 0 && ended < tasks.length) {
        started[ended].await(TIMEOUT).requireOk();
      }
    }
    return System.nanoTime() - begin - paused;
  }

  private Transfer[] tasks(BlockIds ids) {
    int each = layerwise ? blocks : taskBlocks;
    Transfer[] tasks = new Transfer[layerwise ? shards : (blocks + each - 1) / each];
    for (int i = 0; i < tasks.length; i++) {
      Transfer.Builder made = Transfer.scattered(layout);
      int first = layerwise ? 0 : i * each;
      for (int b = first; b < Math.min(blocks, first + each); b++) {
        for (int s = layerwise ? i : 0; s < (layerwise ? i + 1 : shards); s++) {
          made.shard(ids, b, s);
          for (int t = 0; t < tensors; t++) {
            made.piece(payload.region(s, t), b * tensor);
          }
        }
      }
      tasks[i] = made.build();
    }
    return tasks;
  }

  private void lookup(long round) {
    int count = Math.min(blocks, 64);
    BlockIds stored = payload.ids(round, count);
    Supplier<BlockIds> known = () -> stored;
    Supplier<BlockIds> unknown = () -> payload.ids((1L << 30) + ++absent, count);
    ToIntFunction<BlockIds> each = ids -> store.lookup(ids).cardinality();
    ToIntFunction<BlockIds> prefix = ids -> store.lookupPrefix(ids) + 1;
    say(
        "lookup",
        round,
        asked("known_ids_s", count, known, each, count)
            + asked("unknown_ids_s", count, unknown, each, 0)
            + asked("prefix_known_ids_s", count, known, prefix, count)
            + asked("prefix_unknown_calls_s", 1, unknown, prefix, 0));
  }

  /** Ids or calls a second. */
  private static String asked(
      String metric,
      int ofCall,
      Supplier<BlockIds> ids,
      ToIntFunction<BlockIds> call,
      int expected) {
    BlockIds[] next = new BlockIds[16];
    long spent = 0;
    long count = 0;
    while (spent < LOOKUP_NANOS) {
      Arrays.setAll(next, i -> ids.get());
      int wrong = 0;
      long begin = System.nanoTime();
      for (BlockIds one : next) {
        wrong += call.applyAsInt(one) == expected ? 0 : 1;
      }
      spent += System.nanoTime() - begin;
      count += next.length;
      if (wrong > 0) {
        throw new IllegalStateException(wrong + " of " + next.length + " look-ups were wrong");
      }
    }
    return String.format(Locale.ROOT, ",\"%s\":%.0f", metric, count * ofCall * 1e9 / spent);
  }

  /** Memory that the host has given to the page cache, so that a write does not wait for it. */
  private void room() throws Exception {
    if (direct) {
      return;
    }
    Path path = Path.of(folder).resolveSibling("room-" + ProcessHandle.current().pid());
    try (FileChannel file =
        FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
      ByteBuffer piece = ByteBuffer.allocateDirect(ROOM_PIECE);
      for (long at = 0; at < roundBytes + blocks * 8192L + roundBytes / 64; at += ROOM_PIECE) {
        file.write(piece.clear(), at);
      }
      file.truncate(0);
    }
  }

  private long number(String key, long otherwise) {
    String value = options.get(key);
    return value == null ? otherwise : Long.parseLong(value);
  }
}

package test.faulty;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * Hands all calls to the next stage, and does what a file says: {@code lookup slow} (2 s), {@code lookup
 * hang}, {@code load fail}, {@code dump fail}, {@code load slow} (2 s) or {@code load hang}. What hangs does
 * so until the file changes.
 */
@StoreName("Faulty")
public final class FaultyStage implements Store {

  private static final ConfigKey<String> FILE = ConfigKey.text("faulty_file").doc("What to do.");
  private static final Duration SLOW = Duration.ofSeconds(2);
  private static final Duration POLL = Duration.ofMillis(20);

  private final AtomicLong tasks = new AtomicLong();
  private Path file;
  private Store next;

  @Override
  public List<ConfigKey<?>> configKeys() {
    List<ConfigKey<?>> keys = new ArrayList<>(CommonKeys.LAYOUT_KEYS);
    keys.add(FILE);
    return keys;
  }

  @Override
  public void configure(StoreConfig config) {
    CommonKeys.layout(config);
    config.find(FILE).ifPresent(text -> file = Path.of(text));
  }

  @Override
  public void open(StoreContext context) {
    next = context.next();
  }

  private boolean is(String fault) {
    try {
      return Files.exists(file) && Files.readString(file).equals(fault);
    } catch (IOException e) {
      return false;
    }
  }

  private static void pause(Duration time) {
    try {
      Thread.sleep(time);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void waitWhile(String fault) {
    while (is(fault)) {
      pause(POLL);
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    if (is("lookup slow")) {
      pause(SLOW);
    }
    waitWhile("lookup hang");
    return next.lookup(ids);
  }

  @Override
  public Task load(Transfer transfer) {
    if (is("load fail")) {
      return fail(transfer);
    }
    if (is("load slow") || is("load hang")) {
      return later(transfer);
    }
    return next.load(transfer);
  }

  @Override
  public Task dump(Transfer transfer) {
    return is("dump fail") ? fail(transfer) : next.dump(transfer);
  }

  private Task fail(Transfer transfer) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      task.end(shard, ShardOutcome.FAILED, new IOException("a fault of the test"));
    }
    return task;
  }

  private Task later(Transfer transfer) {
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    Thread.ofPlatform()
        .daemon()
        .name("ucm-faulty-load")
        .start(
            () -> {
              pause(SLOW);
              waitWhile("load hang");
              for (int shard = 0; shard < transfer.shardCount(); shard++) {
                task.end(shard, ShardOutcome.FAILED, new IOException("a fault of the test"));
              }
            });
    return task;
  }

  @Override
  public FlushResult flush(Duration timeout) throws InterruptedException {
    return next.flush(timeout);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return next.durable(ids);
  }

  @Override
  public void close() {}
}

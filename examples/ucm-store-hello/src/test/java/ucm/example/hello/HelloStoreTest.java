package ucm.example.hello;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** What no contract knows: the store's own metrics, deadline and files. */
final class HelloStoreTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 8192);
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  @TempDir Path directory;

  private final RecordingMetrics metrics = new RecordingMetrics();
  private final ManualClock clock = new ManualClock();

  private Store open(StoreContext context) {
    Store store = new HelloStore();
    store.configure(
        StoreConfig.of(
            Map.of(
                "hello_directory", directory.toString(),
                "device_id", 0,
                "tensor_size", 4096,
                "shard_size", 4096,
                "block_size", 8192)));
    store.open(context);
    return store;
  }

  private StoreContext context(LongSupplier nanoClock) {
    return new StoreContext() {
      @Override
      public Store backend() {
        return null;
      }

      @Override
      public StoreMetrics metrics() {
        return metrics;
      }

      @Override
      public LongSupplier nanoClock() {
        return nanoClock;
      }
    };
  }

  @Test
  void refusesAStageBehindItBeforeItIsOpened() {
    try (Store store = new HelloStore();
        Store next = new HelloStore()) {
      assertThat(store.refuseNext(null)).isEmpty();
      assertThat(store.refuseNext(next))
          .hasValue("Hello is a last stage and takes no next stage; found Hello");
    }
  }

  @Test
  void countsTheBytesItMoves() throws Exception {
    try (Store store = open(context(clock))) {
      TransferMemory memory =
          TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, BlockBytes.ids(1, 3)).fill();
      store.dump(memory.transfer()).await(PATIENCE).requireOk();
      store.load(memory.scribble().transfer()).await(PATIENCE).requireOk();
      memory.check();
      assertThat(metrics.count("hello_dumped_bytes")).isEqualTo(3 * 8192);
      assertThat(metrics.count("hello_loaded_bytes")).isEqualTo(3 * 8192);
    }
  }

  @Test
  void startsNothingAfterTheDeadline() throws Exception {
    // Each look at this clock takes a minute, twice the default deadline.
    LongSupplier slow =
        () -> {
          clock.advance(Duration.ofMinutes(1));
          return clock.getAsLong();
        };
    try (Store store = open(context(slow))) {
      BlockIds ids = BlockBytes.ids(2, 1);
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();
      TransferResult result = store.dump(memory.transfer()).await(PATIENCE);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
      assertThat(result.outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
      assertThat(store.lookup(ids).isEmpty()).isTrue();
    }
  }

  @Test
  void flushCountsWhatFailedAsSoonAsTheTaskHasEnded() throws Exception {
    CountDownLatch going = new CountDownLatch(1);
    CountDownLatch flushed = new CountDownLatch(1);
    // The first look is for the deadline; the next one waits, and is too late.
    LongSupplier slow =
        () -> {
          long now = clock.getAsLong();
          clock.advance(Duration.ofMinutes(1));
          if (now > 0) {
            await(going);
          }
          return now;
        };
    try (Store store = open(context(slow))) {
      TransferMemory memory =
          TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, BlockBytes.ids(4, 1)).fill();
      Task dump = store.dump(memory.transfer());
      dump.whenTerminal(() -> await(flushed));
      going.countDown();
      dump.await(PATIENCE);
      FlushResult result = store.flush(PATIENCE);
      flushed.countDown();
      assertThat(result.failedCount()).isOne();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void servesNothingOfATruncatedFile() throws Exception {
    try (Store store = open(context(clock))) {
      BlockIds ids = BlockBytes.ids(3, 1);
      TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids).fill();
      store.dump(memory.transfer()).await(PATIENCE).requireOk();
      try (var files = Files.walk(directory)) {
        Path file = files.filter(Files::isRegularFile).findFirst().orElseThrow();
        Files.write(file, new byte[100]);
      }
      TransferResult result = store.load(memory.transfer()).await(PATIENCE);
      assertThat(result.outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
    }
  }
}

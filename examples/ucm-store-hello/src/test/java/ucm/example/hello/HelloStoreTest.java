package ucm.example.hello;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.ManualClock;
import ucm.testkit.StoreFixture;

/** What no contract knows: the store's own metrics, deadline and files. */
final class HelloStoreTest {

  @TempDir Path directory;

  private final StoreFixture stores = new StoreFixture(BlockLayout.uniform(4096, 4096, 8192));
  private final ManualClock clock = new ManualClock();

  @AfterEach
  void closes() {
    stores.close();
  }

  private Store open(LongSupplier nanoClock) {
    Map<String, String> settings = Map.of("hello_directory", directory.toString());
    return stores.open(new HelloStore(), null, settings, nanoClock);
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
    Store store = open(clock);
    BlockIds ids = BlockBytes.ids(1, 3);
    stores.dump(store, ids).requireOk();
    stores.load(store, ids).requireOk();
    assertThat(stores.metrics.count("hello_dumped_bytes")).isEqualTo(3 * 8192);
    assertThat(stores.metrics.count("hello_loaded_bytes")).isEqualTo(3 * 8192);
  }

  @Test
  void startsNothingAfterTheDeadline() throws Exception {
    // Each look at this clock takes a minute, twice the default deadline.
    LongSupplier slow =
        () -> {
          clock.advance(Duration.ofMinutes(1));
          return clock.getAsLong();
        };
    Store store = open(slow);
    BlockIds ids = BlockBytes.ids(2, 1);
    TransferResult result = stores.dump(store, ids);
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(result.outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(store.lookup(ids).isEmpty()).isTrue();
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
    Store store = open(slow);
    Task dump = store.dump(stores.memory(BlockBytes.ids(4, 1)).fill().transfer());
    dump.whenTerminal(() -> await(flushed));
    going.countDown();
    StoreFixture.ended(dump);
    FlushResult result = store.flush(StoreFixture.PATIENCE);
    flushed.countDown();
    assertThat(result.failedCount()).isOne();
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(StoreFixture.PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void servesNothingOfATruncatedFile() throws Exception {
    Store store = open(clock);
    BlockIds ids = BlockBytes.ids(3, 1);
    stores.dump(store, ids).requireOk();
    try (var files = Files.walk(directory)) {
      Path file = files.filter(Files::isRegularFile).findFirst().orElseThrow();
      Files.write(file, new byte[100]);
    }
    assertThat(stores.load(store, ids).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
  }
}

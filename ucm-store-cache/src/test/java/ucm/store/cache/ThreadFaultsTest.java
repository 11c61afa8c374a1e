package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldClock;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.FaultyClock;

/** A thread that runs out of memory closes its store, and ends what is open. */
@Timeout(180)
final class ThreadFaultsTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 2 * 4096);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final HeldNext next = new HeldNext();
  private final BlockingQueue<String> errors = new LinkedBlockingQueue<>();
  private final Logger logger = (Logger) LoggerFactory.getLogger(CacheStore.class);
  private final AppenderBase<ILoggingEvent> reader =
      new AppenderBase<>() {
        @Override
        protected void append(ILoggingEvent event) {
          errors.add(event.getFormattedMessage());
        }
      };

  @BeforeEach
  void listen() {
    reader.start();
    logger.setLevel(Level.ERROR);
    logger.setAdditive(false);
    logger.addAppender(reader);
  }

  @AfterEach
  void listenNoMore() {
    logger.detachAppender(reader);
    logger.setAdditive(true);
    logger.setLevel(null);
  }

  @Test
  void theThreadThatAsksTheNextStage() throws InterruptedException {
    LongSupplier stopped = new HeldClock();
    try (TestCache cache = new TestCache(LAYOUT, next, 8, Map.of("timeout_ms", 1000), stopped)) {
      Task load = cache.store.load(memory(1).transfer());
      HeldNext.Held held = next.nextLoad();
      next.onLookup =
          number -> {
            // Once: this thread asks, too, whether the store is closed.
            next.onLookup = later -> {};
            throw new OutOfMemoryError("thrown by a test");
          };
      Task dump = cache.store.dump(memory(2).fill().transfer());
      requireClosed(cache, "ucm-cache-dispatch-0");
      assertThat(load.await(PATIENCE).ok()).isFalse();
      assertThat(dump.await(PATIENCE).ok()).isFalse();
      held.serveAll();
    }
  }

  @Test
  void theThreadOfTheDeadlines() throws InterruptedException {
    try (TestCache cache =
        new TestCache(
            LAYOUT, next, 8, Map.of("timeout_ms", 1000), new FaultyClock("ucm-cache-deadline-0"))) {
      Task load = cache.store.load(memory(1).transfer());
      HeldNext.Held held = next.nextLoad();
      requireClosed(cache, "ucm-cache-deadline-0");
      assertThat(load.await(PATIENCE).ok()).isFalse();
      held.serveAll();
    }
  }

  private void requireClosed(TestCache cache, String thread) throws InterruptedException {
    assertThat(errors.take()).contains("Cache", thread, "OutOfMemoryError", "the store is closed");
    BlockIds ids = BlockBytes.ids(1, 1);
    assertThatThrownBy(
            () -> {
              while (true) {
                cache.store.durable(ids);
                Thread.onSpinWait();
              }
            })
        .isInstanceOf(StoreClosedException.class);
  }

  private static TransferMemory memory(int seed) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, BlockBytes.ids(seed, 1));
  }
}

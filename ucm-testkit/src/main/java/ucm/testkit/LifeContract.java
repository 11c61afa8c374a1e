package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.config.StoreConfig;
import ucm.testkit.TransferMemory.Placement;

/** The part of the suite about the order configure, open, use, close. */
abstract class LifeContract extends ConfigurationContract {

  private static final SampleLayout SAMPLE = SampleLayout.TWO_TENSORS_THREE_SHARDS;
  private static final BlockIds IDS = BlockBytes.ids(1, 3);

  @Test
  void refusesToOpenBeforeItIsConfigured() {
    Store store = newStore();
    requireWrongOrder(store, "NEW", () -> store.open(StoreContext.of(null)));
    store.close();
  }

  @Test
  void refusesToBeConfiguredTwice() {
    BlockLayout layout = need(SAMPLE);
    Store store = newStore();
    configure(store, fullSettings(layout, Map.of()));
    requireWrongOrder(store, "CONFIGURED", () -> reconfigure(store, layout));
    open(store, SAMPLE, Map.of());
    requireWrongOrder(store, "OPEN", () -> reconfigure(store, layout));
    closeAll();
    requireWrongOrder(store, "CLOSED", () -> reconfigure(store, layout));
  }

  @Test
  void refusesToBeOpenedTwice() {
    Store store = open(SAMPLE);
    requireWrongOrder(store, "OPEN", () -> store.open(StoreContext.of(null)));
    closeAll();
    requireWrongOrder(store, "CLOSED", () -> store.open(StoreContext.of(null)));
  }

  @Test
  void refusesUseBeforeItIsOpen() {
    BlockLayout layout = need(SAMPLE);
    Store store = newStore();
    uses(store, layout).forEach((what, use) -> requireWrongOrder(store, "NEW", use));
    configure(store, fullSettings(layout, Map.of()));
    uses(store, layout).forEach((what, use) -> requireWrongOrder(store, "CONFIGURED", use));
    store.close();
  }

  @Test
  void refusesUseAfterItIsClosed() {
    Store store = open(SAMPLE);
    closeAll();
    uses(store, SAMPLE.layout())
        .forEach(
            (what, use) ->
                assertThatThrownBy(use)
                    .as("%s after close", what)
                    .isInstanceOf(StoreClosedException.class)
                    .hasMessageContaining(store.name()));
  }

  @Test
  void isClosedForGoodWhenClosedBeforeItIsOpened() {
    BlockLayout layout = need(SAMPLE);
    Store fresh = newStore();
    fresh.close();
    requireWrongOrder(fresh, "CLOSED", () -> reconfigure(fresh, layout));
    Store configured = newStore();
    configure(configured, fullSettings(layout, Map.of()));
    configured.close();
    requireWrongOrder(configured, "CLOSED", () -> configured.open(StoreContext.of(null)));
    assertThatThrownBy(() -> configured.lookup(IDS)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void closesTwiceWithoutHarm() {
    Store store = open(SAMPLE);
    store.close();
    store.close();
    requireNoThreadBut(store);
  }

  @Test
  void returnsFromEveryCloseOnlyWhenItIsClosed() throws Exception {
    Store store = open(SAMPLE);
    ended(store.dump(memory(SAMPLE.layout()).fill().transfer()));
    int closers = 4;
    CyclicBarrier together = new CyclicBarrier(closers);
    try (ExecutorService threads = Executors.newFixedThreadPool(closers)) {
      Callable<Void> close =
          () -> {
            together.await();
            store.close();
            requireNoThreadBut(store);
            return null;
          };
      for (Future<Void> closed : threads.invokeAll(Collections.nCopies(closers, close))) {
        closed.get(patience().toSeconds(), TimeUnit.SECONDS);
      }
    }
  }

  @Test
  void closesWholeOnAThreadThatIsInterrupted() throws Exception {
    Store store = open(SAMPLE);
    ended(store.dump(memory(SAMPLE.layout()).fill().transfer()));
    Thread.currentThread().interrupt();
    store.close();
    assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
    requireNoThreadBut(store);
  }

  @Test
  void canBeOpenedAgainByAnotherInstance() {
    for (int i = 0; i < 3; i++) {
      Store store = open(SAMPLE);
      assertThat(store.lookup(BlockBytes.ids(2, 8)).stream()).isEmpty();
      closeAll();
      requireNoThread();
    }
  }

  /** The next stage is still open when the stage above it was closed, so its threads may live on. */
  private void requireNoThreadBut(Store closed) {
    if (newNextStage() == null) {
      requireNoThread();
    }
    assertThatThrownBy(() -> closed.lookup(IDS)).isInstanceOf(StoreClosedException.class);
  }

  private void reconfigure(Store store, BlockLayout layout) {
    store.configure(StoreConfig.of(fullSettings(layout, Map.of())));
  }

  private static TransferMemory memory(BlockLayout layout) {
    return TransferMemory.ofBlocks(layout, Placement.SCATTERED, IDS);
  }

  private Map<String, ThrowingCallable> uses(Store store, BlockLayout layout) {
    Map<String, ThrowingCallable> uses = new LinkedHashMap<>();
    uses.put("lookup", () -> store.lookup(IDS));
    uses.put("lookup of nothing", () -> store.lookup(BlockIds.empty()));
    uses.put("lookupPrefix", () -> store.lookupPrefix(IDS));
    uses.put("prefetch", () -> store.prefetch(IDS));
    uses.put("load", () -> store.load(memory(layout).transfer()));
    uses.put("dump", () -> store.dump(memory(layout).fill().transfer()));
    uses.put("flush", () -> store.flush(Duration.ZERO));
    uses.put("durable", () -> store.durable(IDS));
    if (removesBlocks()) {
      uses.put("remove", () -> store.remove(IDS));
    }
    return uses;
  }

  private static void requireWrongOrder(Store store, String state, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalStateException.class)
        .satisfies(
            e ->
                assertThat(String.valueOf(e.getMessage()).toUpperCase(Locale.ROOT))
                    .as("names store and state")
                    .contains(store.name().toUpperCase(Locale.ROOT), state));
  }
}

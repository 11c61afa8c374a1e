package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.testkit.SampleLayout.TWO_TENSORS_THREE_SHARDS;
import static ucm.testkit.TransferMemory.Placement.SCATTERED;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.config.StoreConfig;

/** The part of the suite about the order configure, open, use, close. */
interface LifeContract extends ContractPart {

  private static BlockIds ids() {
    return BlockBytes.ids(1, 3);
  }

  @Test
  default void refusesToOpenBeforeItIsConfigured() {
    Store store = suite().newStore();
    requireWrongOrder(store, "NEW", () -> store.open(StoreContext.of(null)));
    store.close();
  }

  @Test
  default void refusesToBeConfiguredTwice() {
    Store store = suite().newStore();
    configure(store);
    requireWrongOrder(store, "CONFIGURED", () -> reconfigure(store));
    suite().open(store, TWO_TENSORS_THREE_SHARDS, Map.of());
    requireWrongOrder(store, "OPEN", () -> reconfigure(store));
    suite().closeAll();
    requireWrongOrder(store, "CLOSED", () -> reconfigure(store));
  }

  @Test
  default void refusesToBeOpenedTwice() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    requireWrongOrder(store, "OPEN", () -> store.open(StoreContext.of(null)));
    suite().closeAll();
    requireWrongOrder(store, "CLOSED", () -> store.open(StoreContext.of(null)));
  }

  @Test
  default void refusesUseBeforeItIsOpen() {
    Store store = suite().newStore();
    uses(store).forEach((what, use) -> requireWrongOrder(store, "NEW", use));
    configure(store);
    uses(store).forEach((what, use) -> requireWrongOrder(store, "CONFIGURED", use));
    store.close();
  }

  @Test
  default void refusesUseAfterItIsClosed() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    suite().closeAll();
    uses(store)
        .forEach(
            (what, use) ->
                assertThatThrownBy(use)
                    .as("%s after close", what)
                    .isInstanceOf(StoreClosedException.class)
                    .hasMessageContaining(store.name()));
  }

  @Test
  default void isClosedForGoodWhenClosedBeforeItIsOpened() {
    Store fresh = suite().newStore();
    fresh.close();
    requireWrongOrder(fresh, "CLOSED", () -> reconfigure(fresh));
    Store configured = suite().newStore();
    configure(configured);
    configured.close();
    requireWrongOrder(configured, "CLOSED", () -> configured.open(StoreContext.of(null)));
    assertThatThrownBy(() -> configured.lookup(ids())).isInstanceOf(StoreClosedException.class);
  }

  @Test
  default void closesTwiceWithoutHarm() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    store.close();
    store.close();
    requireNoThreadBut(store);
  }

  @Test
  default void returnsFromEveryCloseOnlyWhenItIsClosed() throws Exception {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    store.requireDumps(store.memory(ids()));
    AtOnce.run(
        suite().patience(),
        thread -> {
          store.close();
          requireNoThreadBut(store);
        });
  }

  @Test
  default void closesWholeOnAThreadThatIsInterrupted() {
    OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
    store.requireDumps(store.memory(ids()));
    Thread.currentThread().interrupt();
    store.close();
    assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
    requireNoThreadBut(store);
  }

  @Test
  default void canBeOpenedAgainByAnotherInstance() {
    for (int i = 0; i < 3; i++) {
      OpenStore store = suite().open(TWO_TENSORS_THREE_SHARDS);
      assertThat(store.lookup(BlockBytes.ids(2, 8)).stream()).isEmpty();
      suite().closeAll();
      suite().requireNoThread();
    }
  }

  /** The next stage is still open when the stage above it was closed, so its threads may live on. */
  private void requireNoThreadBut(Store closed) {
    if (suite().newNextStage() == null) {
      suite().requireNoThread();
    }
    assertThatThrownBy(() -> closed.lookup(ids())).isInstanceOf(StoreClosedException.class);
  }

  private void configure(Store store) {
    StoreContract.configure(store, settings());
  }

  private void reconfigure(Store store) {
    store.configure(StoreConfig.of(settings()));
  }

  private Map<String, Object> settings() {
    return suite().fullSettings(TWO_TENSORS_THREE_SHARDS, Map.of());
  }

  private Map<String, ThrowingCallable> uses(Store store) {
    BlockIds ids = ids();
    TransferMemory memory =
        TransferMemory.ofBlocks(TWO_TENSORS_THREE_SHARDS.layout(), SCATTERED, ids).fill();
    Map<String, ThrowingCallable> uses = new LinkedHashMap<>();
    uses.put("lookup", () -> store.lookup(ids));
    uses.put("lookup of nothing", () -> store.lookup(BlockIds.empty()));
    uses.put("lookupPrefix", () -> store.lookupPrefix(ids));
    uses.put("prefetch", () -> store.prefetch(ids));
    uses.put("load", () -> store.load(memory.transfer()));
    uses.put("dump", () -> store.dump(memory.transfer()));
    uses.put("flush", () -> store.flush(Duration.ZERO));
    uses.put("durable", () -> store.durable(ids));
    if (suite().removesBlocks()) {
      uses.put("remove", () -> store.remove(ids));
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

package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static ucm.testkit.SampleLayout.ONE_TENSOR;
import static ucm.testkit.SampleLayout.TWO_TENSORS_THREE_SHARDS;
import static ucm.testkit.TransferMemory.Placement.SCATTERED;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreName;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

/** The part of the suite about names, keys, and the order configure, open, use, close. */
interface LifeContract extends ContractPart {

  /** What no type of key allows. */
  private static Object bad() {
    return List.of(List.of("not a value of any type"));
  }

  @Test
  default void carriesAValidName() {
    assertThat(suite().newStore().name()).matches(StoreName.PATTERN);
  }

  @Test
  default void canBeMadeByServiceLoader() throws ReflectiveOperationException {
    assumeTrue(suite().isService(), "is not found by ServiceLoader (isService)");
    Class<? extends Store> type = suite().newStore().getClass();
    assertThat(type).hasAnnotation(StoreName.class);
    assertThat(Modifier.isPublic(type.getModifiers())).as("%s is public", type).isTrue();
    assertThat(Modifier.isPublic(type.getDeclaredConstructor().getModifiers()))
        .as("%s has a public constructor without parameters", type)
        .isTrue();
  }

  @Test
  default void saysWhetherItKeepsBytes() {
    suite().needBlocks();
    assertThat(suite().newStore().keepsBytes()).isEqualTo(suite().keepsBytes());
  }

  @Test
  default void namesItsKeysInEveryState() {
    Store store = suite().newStore();
    List<String> fresh = keyNames(store);
    StoreContract.configure(store, settings(ONE_TENSOR));
    assertThat(keyNames(store)).as("keys when configured").isEqualTo(fresh);
    suite().open(store, ONE_TENSOR, Map.of());
    assertThat(keyNames(store)).as("keys when open").isEqualTo(fresh);
    suite().closeAll();
    assertThat(keyNames(store)).as("keys when closed").isEqualTo(fresh);
  }

  @Test
  default void declaresEachKeyOnceWithItsMeaning() {
    List<ConfigKey<?>> keys = suite().newStore().configKeys();
    assertThat(keys).extracting(ConfigKey::name).doesNotHaveDuplicates().doesNotContain("");
    assertThat(keys).allSatisfy(key -> assertThat(key.doc()).as("meaning of %s", key).isNotBlank());
  }

  @Test
  default void configuringTouchesNoFileAndStartsNoThread() throws IOException {
    Store store = suite().newStore();
    StoreContract.configure(store, settings(ONE_TENSOR));
    assertThat(files()).as("files made by configure").isEmpty();
    suite().requireNoThread();
    store.close();
    assertThat(files()).as("files made by configure and close").isEmpty();
  }

  @Test
  default void reportsABadValueOfEachKeyWithoutThrowing() {
    Map<String, Object> good = settings(ONE_TENSOR);
    for (ConfigKey<?> key : suite().newStore().configKeys()) {
      Map<String, Object> settings = new TreeMap<>(good);
      settings.put(key.name(), bad());
      assertThat(errors(settings)).as("errors when %s is bad", key).contains(key.name());
    }
  }

  @Test
  default void reportsAllBadValuesAtOnce() {
    Map<String, Object> settings = settings(ONE_TENSOR);
    List<ConfigKey<?>> keys = suite().newStore().configKeys();
    keys.forEach(key -> settings.put(key.name(), bad()));
    assertThat(errors(settings))
        .as("errors when every key is bad")
        .containsAll(keys.stream().map(ConfigKey::name).toList());
  }

  private List<String> errors(Map<String, Object> settings) {
    StoreConfig config = StoreConfig.of(settings);
    assertThatCode(() -> suite().newStore().configure(config)).doesNotThrowAnyException();
    return config.problems().stream()
        .filter(ConfigProblem::isError)
        .map(ConfigProblem::key)
        .toList();
  }

  private static List<String> keyNames(Store store) {
    return store.configKeys().stream().map(ConfigKey::name).toList();
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(suite().directory)) {
      return files.toList();
    }
  }

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
    suite()
        .atOnce(
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
    StoreContract.configure(store, settings(TWO_TENSORS_THREE_SHARDS));
  }

  private void reconfigure(Store store) {
    store.configure(StoreConfig.of(settings(TWO_TENSORS_THREE_SHARDS)));
  }

  private Map<String, Object> settings(SampleLayout sample) {
    return suite().fullSettings(sample, Map.of());
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
    uses.put("notePrompt", () -> store.notePrompt(ids));
    uses.put("load", () -> store.load(memory.transfer()));
    uses.put("dump", () -> store.dump(memory.transfer()));
    uses.put("flush", () -> store.flush(Duration.ZERO));
    uses.put("hasRoom", () -> store.hasRoom(0));
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

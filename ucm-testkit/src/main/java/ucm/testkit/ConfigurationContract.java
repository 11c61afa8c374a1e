package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static ucm.testkit.SampleLayout.ONE_TENSOR;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

/** The part of the suite about names, keys and {@link Store#configure}. */
interface ConfigurationContract extends ContractPart {

  /** What no type of key allows. */
  private static Object bad() {
    return List.of(List.of("not a value of any type"));
  }

  private Map<String, Object> settings() {
    return suite().fullSettings(ONE_TENSOR, Map.of());
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
    StoreContract.configure(store, settings());
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
    StoreContract.configure(store, settings());
    assertThat(files()).as("files made by configure").isEmpty();
    suite().requireNoThread();
    store.close();
    assertThat(files()).as("files made by configure and close").isEmpty();
  }

  @Test
  default void reportsABadValueOfEachKeyWithoutThrowing() {
    Map<String, Object> good = settings();
    for (ConfigKey<?> key : suite().newStore().configKeys()) {
      Map<String, Object> settings = new TreeMap<>(good);
      settings.put(key.name(), bad());
      assertThat(errors(settings)).as("errors when %s is bad", key).contains(key.name());
    }
  }

  @Test
  default void reportsAllBadValuesAtOnce() {
    Map<String, Object> settings = settings();
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
}

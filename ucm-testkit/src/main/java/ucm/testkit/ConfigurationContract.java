package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

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
abstract class ConfigurationContract extends StoreUnderTest {

  /** No type of key allows this. */
  private static final Object BAD = List.of(List.of("not a value of any type"));

  @Test
  void carriesAValidName() {
    assertThat(newStore().name()).matches(StoreName.PATTERN);
  }

  @Test
  void canBeMadeByServiceLoader() throws ReflectiveOperationException {
    assumeTrue(isService(), "is not found by ServiceLoader (isService)");
    Class<? extends Store> type = newStore().getClass();
    assertThat(type).hasAnnotation(StoreName.class);
    assertThat(Modifier.isPublic(type.getModifiers())).as("%s is public", type).isTrue();
    assertThat(Modifier.isPublic(type.getDeclaredConstructor().getModifiers()))
        .as("%s has a public constructor without parameters", type)
        .isTrue();
  }

  @Test
  void saysWhetherItKeepsBytes() {
    assumeTrue(keepsBlocks(), "keeps no blocks (keepsBlocks)");
    assertThat(newStore().keepsBytes()).isEqualTo(keepsBytes());
  }

  @Test
  void namesItsKeysInEveryState() {
    SampleLayout sample = SampleLayout.ONE_TENSOR;
    Store store = newStore();
    List<String> fresh = keyNames(store);
    configure(store, fullSettings(need(sample), Map.of()));
    assertThat(keyNames(store)).as("keys when configured").isEqualTo(fresh);
    open(store, sample, Map.of());
    assertThat(keyNames(store)).as("keys when open").isEqualTo(fresh);
    closeAll();
    assertThat(keyNames(store)).as("keys when closed").isEqualTo(fresh);
  }

  @Test
  void declaresEachKeyOnceWithItsMeaning() {
    List<ConfigKey<?>> keys = newStore().configKeys();
    assertThat(keys).extracting(ConfigKey::name).doesNotHaveDuplicates().doesNotContain("");
    assertThat(keys).allSatisfy(key -> assertThat(key.doc()).as("meaning of %s", key).isNotBlank());
  }

  @Test
  void configuringTouchesNoFileAndStartsNoThread() throws IOException {
    Store store = newStore();
    configure(store, fullSettings(need(SampleLayout.ONE_TENSOR), Map.of()));
    assertThat(filesBelow(directory)).as("files made by configure").isEmpty();
    requireNoThread();
    store.close();
    assertThat(filesBelow(directory)).as("files made by configure and close").isEmpty();
  }

  @Test
  void reportsABadValueOfEachKeyWithoutThrowing() {
    Map<String, Object> good = fullSettings(need(SampleLayout.ONE_TENSOR), Map.of());
    for (ConfigKey<?> key : newStore().configKeys()) {
      Map<String, Object> settings = new TreeMap<>(good);
      settings.put(key.name(), BAD);
      assertThat(errors(settings)).as("errors when %s is bad", key).contains(key.name());
    }
  }

  @Test
  void reportsAllBadValuesAtOnce() {
    Map<String, Object> settings = fullSettings(need(SampleLayout.ONE_TENSOR), Map.of());
    List<ConfigKey<?>> keys = newStore().configKeys();
    keys.forEach(key -> settings.put(key.name(), BAD));
    assertThat(errors(settings))
        .as("errors when every key is bad")
        .containsAll(keys.stream().map(ConfigKey::name).toList());
  }

  private List<String> errors(Map<String, Object> settings) {
    StoreConfig config = StoreConfig.of(settings);
    assertThatCode(() -> newStore().configure(config)).doesNotThrowAnyException();
    return config.problems().stream()
        .filter(ConfigProblem::isError)
        .map(ConfigProblem::key)
        .toList();
  }

  private static List<String> keyNames(Store store) {
    return store.configKeys().stream().map(ConfigKey::name).toList();
  }

  private static List<Path> filesBelow(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(file -> !file.equals(folder)).toList();
    }
  }
}

package ucm.api.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.config.StoreConfig.Value;

final class StoreConfigTest {

  private static final ConfigKey<Integer> WORKERS =
      ConfigKey.integer("workers").range(1, 8).defaultTo(2).alias("threads", "n");
  private static final ConfigKey<Long> BYTES = ConfigKey.longInteger("bytes").require();
  private static final ConfigKey<String> NAME = ConfigKey.text("name");

  @Test
  void readsWhatIsSet() {
    StoreConfig config = StoreConfig.of(Map.of("workers", 4, "bytes", 10L));
    assertThat(config.get(WORKERS)).isEqualTo(4);
    assertThat(config.get(BYTES)).isEqualTo(10);
    assertThat(config.find(WORKERS)).contains(4);
    assertThat(config.isSet(WORKERS)).isTrue();
    assertThat(config.origin(WORKERS)).hasToString("engine");
    assertThat(config.problems()).isEmpty();
    assertThat(config.hasErrors()).isFalse();
  }

  @Test
  void givesTheDefaultOfWhatIsNotSet() {
    StoreConfig config = StoreConfig.of(Map.of());
    assertThat(config.get(WORKERS)).isEqualTo(2);
    assertThat(config.find(WORKERS)).as("its default does not count").isEmpty();
    assertThat(config.isSet(WORKERS)).isFalse();
    assertThat(config.origin(WORKERS)).hasToString("default");
    assertThat(config.get(NAME)).as("a fallback").isEmpty();
    assertThat(config.find(NAME)).isEmpty();
    assertThat(config.problems()).isEmpty();
  }

  @Test
  void findsAValueByAnAlias() {
    StoreConfig config = StoreConfig.of(Map.of("n", 5));
    assertThat(config.get(WORKERS)).isEqualTo(5);
    assertThat(config.isSet(WORKERS)).isTrue();
    assertThat(StoreConfig.of(Map.of("n", 5, "threads", 6)).get(WORKERS)).isEqualTo(6);
    assertThat(StoreConfig.of(Map.of("n", 5, "threads", 6, "workers", 7)).get(WORKERS))
        .as("its own name comes first")
        .isEqualTo(7);
  }

  @Test
  void addsValuesThatComeFirstAndKeepsOneListOfProblems() {
    StoreConfig config = StoreConfig.of(Map.of("workers", 4, "bytes", 10L));
    StoreConfig more =
        config.with(Map.of("workers", new Value(9, new ConfigOrigin("ucm.yaml", 3, 12))));
    assertThat(more.get(BYTES)).isEqualTo(10);
    assertThat(more.get(WORKERS)).as("too many, so the default is used").isEqualTo(2);
    assertThat(config.problems()).hasSize(1).isEqualTo(more.problems());
    assertThat(config.problems().getFirst().origin()).hasToString("ucm.yaml:3:12");
    assertThat(config.get(WORKERS)).isEqualTo(4);
  }

  @Test
  void reportsEveryFaultTogetherWithItsPlace() {
    StoreConfig config =
        new StoreConfig(
            Map.of(
                "workers", new Value("many", new ConfigOrigin("ucm.yaml", 3, 12)),
                "name", new Value(List.of(), new ConfigOrigin("ucm.yaml", 7, 3))));
    assertThat(config.get(WORKERS)).as("the default is used").isEqualTo(2);
    assertThat(config.get(BYTES)).as("zero is used").isZero();
    assertThat(config.find(NAME)).isEmpty();
    config.reject(WORKERS, "does not go with name");
    config.warn(NAME, "is no longer used");
    assertThat(config.problems())
        .extracting(ConfigProblem::toString)
        .containsExactly(
            "ucm.yaml:3:12: error: workers: found \"many\"; allowed is an integer, 1 to 8",
            "default: error: bytes: is required and not set; allowed is an integer",
            "ucm.yaml:7:3: error: name: found []; allowed is text",
            "ucm.yaml:3:12: error: workers: does not go with name",
            "ucm.yaml:7:3: warning: name: is no longer used");
    assertThat(config.hasErrors()).isTrue();
  }

  @Test
  void reportsAFaultOnceHoweverOftenItIsRead() {
    StoreConfig config = StoreConfig.of(Map.of("workers", 99));
    config.get(WORKERS);
    config.get(WORKERS);
    config.find(WORKERS);
    config.get(BYTES);
    config.get(BYTES);
    assertThat(config.problems()).hasSize(2);
  }

  @Test
  void isUsableWithWarningsAlone() {
    StoreConfig config = StoreConfig.of(Map.of());
    config.warn(WORKERS, "is small");
    assertThat(config.problems()).hasSize(1);
    assertThat(config.hasErrors()).isFalse();
  }

  @Test
  void copiesWhatItIsGivenAndGives() {
    Map<String, Value> values = new HashMap<>();
    values.put("workers", new Value(3, ConfigOrigin.of("test")));
    StoreConfig config = new StoreConfig(values);
    values.clear();
    assertThat(config.get(WORKERS)).isEqualTo(3);
    List<ConfigProblem> before = config.problems();
    config.warn(NAME, "is short");
    assertThat(before).isEmpty();
  }

  @Test
  void sortsOriginsByPlace() {
    ConfigOrigin early = new ConfigOrigin("a.yaml", 2, 9);
    assertThat(early)
        .isLessThan(new ConfigOrigin("a.yaml", 10, 1))
        .isLessThan(new ConfigOrigin("a.yaml", 2, 10))
        .isLessThan(new ConfigOrigin("b.yaml", 1, 1))
        .isEqualByComparingTo(new ConfigOrigin("a.yaml", 2, 9));
  }
}

package ucm.api.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.FieldSource;

final class ConfigKeyTest {

  private static final ConfigKey<Integer> WORKERS =
      ConfigKey.integer("workers").range(1, 8).defaultTo(2).unit("threads").doc("How many.");
  private static final ConfigKey<Long> BYTES = ConfigKey.longInteger("bytes").atLeast(0);
  private static final ConfigKey<Double> RATIO = ConfigKey.number("ratio").range(0, 1);
  private static final ConfigKey<Boolean> FLAG = ConfigKey.flag("flag");
  private static final ConfigKey<String> TEXT = ConfigKey.text("text");
  private static final ConfigKey<String> ENGINE = ConfigKey.choice("engine", "psync", "aio");
  private static final ConfigKey<List<String>> PATHS = ConfigKey.paths("paths");
  private static final ConfigKey<List<Long>> SIZES = ConfigKey.longIntegers("sizes").atLeast(1);

  static final Arguments[] GOOD = {
    Arguments.of(WORKERS, 8L, 8),
    Arguments.of(WORKERS, 1, 1),
    Arguments.of(WORKERS, 3.0, 3),
    Arguments.of(BYTES, Long.MAX_VALUE, Long.MAX_VALUE),
    Arguments.of(BYTES, 1e9, 1_000_000_000L),
    Arguments.of(RATIO, 0.5, 0.5),
    Arguments.of(RATIO, 1L, 1.0),
    Arguments.of(FLAG, true, true),
    Arguments.of(FLAG, "yes", true),
    Arguments.of(FLAG, "ON", true),
    Arguments.of(FLAG, "off", false),
    Arguments.of(FLAG, "No", false),
    Arguments.of(TEXT, "a b", "a b"),
    Arguments.of(TEXT, 12L, "12"),
    Arguments.of(TEXT, true, "true"),
    Arguments.of(ENGINE, "aio", "aio"),
    Arguments.of(PATHS, "/a:/b", List.of("/a", "/b")),
    Arguments.of(PATHS, "/a", List.of("/a")),
    Arguments.of(PATHS, List.of("/a:b", "/c"), List.of("/a:b", "/c")),
    Arguments.of(SIZES, List.of(1L, 2, 3.0), List.of(1L, 2L, 3L)),
    Arguments.of(SIZES, List.of(), List.of())
  };

  static final Arguments[] BAD = {
    Arguments.of(WORKERS, 0L, "found 0; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(WORKERS, 9L, "found 9; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(WORKERS, 1L << 32, "found 4294967296; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(WORKERS, "2", "found \"2\"; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(WORKERS, 2.5, "found 2.5; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(WORKERS, true, "found true; allowed is an integer, 1 to 8 (threads)"),
    Arguments.of(BYTES, -1L, "found -1; allowed is an integer, 0 or more"),
    Arguments.of(BYTES, 1e30, "found 1.0E30; allowed is an integer, 0 or more"),
    Arguments.of(BYTES, Double.NaN, "found NaN; allowed is an integer, 0 or more"),
    Arguments.of(RATIO, 1.01, "found 1.01; allowed is a number, 0 to 1"),
    Arguments.of(RATIO, Double.NaN, "found NaN; allowed is a number, 0 to 1"),
    Arguments.of(RATIO, "half", "found \"half\"; allowed is a number, 0 to 1"),
    Arguments.of(FLAG, 1L, "found 1; allowed is true or false"),
    Arguments.of(FLAG, "si", "found \"si\"; allowed is true or false"),
    Arguments.of(TEXT, List.of("a"), "found [a]; allowed is text"),
    Arguments.of(ENGINE, "AIO", "found \"AIO\"; allowed is one of psync, aio"),
    Arguments.of(
        PATHS,
        "/a::/b",
        "found \"/a::/b\"; allowed is a path, several joined by ':', or a list of paths"),
    Arguments.of(
        PATHS, List.of(), "found []; allowed is a path, several joined by ':', or a list of paths"),
    Arguments.of(
        PATHS,
        List.of("/a", " "),
        "found [/a,  ]; allowed is a path, several joined by ':', or a list of paths"),
    Arguments.of(
        PATHS,
        "/a\0b",
        "found \"/a\0b\"; allowed is a path, several joined by ':', or a list of paths"),
    Arguments.of(SIZES, 4L, "found 4; allowed is a list of integers, 1 or more"),
    Arguments.of(SIZES, List.of(4L, 0L), "found [4, 0]; allowed is a list of integers, 1 or more"),
    Arguments.of(SIZES, List.of("4"), "found [4]; allowed is a list of integers, 1 or more")
  };

  @ParameterizedTest
  @FieldSource("GOOD")
  void parses(ConfigKey<?> key, Object raw, Object expected) {
    assertThat(key.parse(raw)).isEqualTo(expected);
  }

  @ParameterizedTest
  @FieldSource("BAD")
  void saysWhatWasFoundAndWhatIsAllowed(ConfigKey<?> key, Object raw, String message) {
    assertThatThrownBy(() -> key.parse(raw))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(message);
  }

  @Test
  void givesUnmodifiableLists() {
    List<Long> parsed = SIZES.parse(new ArrayList<>(List.of(1L)));
    assertThatThrownBy(() -> parsed.add(2L)).isInstanceOf(UnsupportedOperationException.class);
  }

  @Test
  void isDescribedByItsDeclaration() {
    assertThat(WORKERS.name()).isEqualTo("workers");
    assertThat(WORKERS).hasToString("workers");
    assertThat(WORKERS.allowed()).isEqualTo("an integer, 1 to 8 (threads)");
    assertThat(WORKERS.defaultValue()).isEqualTo(2);
    assertThat(WORKERS.defaultText()).isEqualTo("2");
    assertThat(WORKERS.unit()).isEqualTo("threads");
    assertThat(WORKERS.doc()).isEqualTo("How many.");
    assertThat(WORKERS.required()).isFalse();
    assertThat(TEXT.defaultTo("x").defaultText()).isEqualTo("\"x\"");
    assertThat(RATIO.defaultTo(1.0).defaultText()).isEqualTo("1");
    assertThat(TEXT.defaultText()).isEqualTo("unset");
    assertThat(RATIO.range(0.25, 0.75).allowed()).isEqualTo("a number, 0.25 to 0.75");
  }

  @Test
  void hasOneKindOfDefault() {
    ConfigKey<Integer> described = WORKERS.defaultDescribed("one per core");
    assertThat(described.defaultValue()).isNull();
    assertThat(described.defaultText()).isEqualTo("one per core");
    ConfigKey<Integer> required = WORKERS.require();
    assertThat(required.required()).isTrue();
    assertThat(required.defaultValue()).isNull();
    assertThat(required.defaultText()).isEqualTo("required");
    assertThat(required.defaultTo(4).required()).isFalse();
  }

  @Test
  void isNotChangedByWhatIsMadeOfIt() {
    ConfigKey<Integer> changed =
        WORKERS.range(5, 6).defaultTo(5).unit("cores").doc("Other.").alias("threads", "n");
    assertThat(WORKERS.allowed()).isEqualTo("an integer, 1 to 8 (threads)");
    assertThat(WORKERS.defaultValue()).isEqualTo(2);
    assertThat(WORKERS.aliases()).isEmpty();
    assertThat(changed.aliases()).containsExactly("threads", "n");
    assertThat(changed.allowed()).isEqualTo("an integer, 5 to 6 (cores)");
    assertThat(changed.doc()).isEqualTo("Other.");
  }
}

package ucm.api.config;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A configuration key, declared once: its name, type, default, unit, range and meaning. Checks,
 * messages and the reference page all come from this declaration. Immutable.
 *
 * <pre>{@code
 * static final ConfigKey<Integer> WORKERS =
 *     ConfigKey.integer("posix_data_trans_concurrency")
 *         .range(1, 4096).defaultTo(128).unit("threads").doc("most psync workers at once");
 * }</pre>
 *
 * <p>A key inside a nested map is named with a dot: {@code store_health.enabled}.
 *
 * @param <T> the Java type of its value
 */
public final class ConfigKey<T> {

  private final String name;
  private final String type;
  private final Function<Object, T> parser;
  private final T fallback;

  // Written only by the method that has just made the copy, before another thread sees it.
  private @Nullable T defaultValue;
  private String defaultText = "unset";
  private boolean required;
  private double min = Double.NEGATIVE_INFINITY;
  private boolean isAboveMin;
  private double max = Double.POSITIVE_INFINITY;
  private String unit = "";
  private String doc = "";
  private List<String> aliases = List.of();
  private boolean isLive;

  private ConfigKey(String name, String type, T fallback, Function<Object, T> parser) {
    this.name = name;
    this.type = type;
    this.fallback = fallback;
    this.parser = parser;
  }

  private ConfigKey<T> with(Consumer<ConfigKey<T>> change) {
    ConfigKey<T> copy = new ConfigKey<>(name, type, fallback, parser);
    copy.defaultValue = defaultValue;
    copy.defaultText = defaultText;
    copy.required = required;
    copy.min = min;
    copy.isAboveMin = isAboveMin;
    copy.max = max;
    copy.unit = unit;
    copy.doc = doc;
    copy.aliases = aliases;
    copy.isLive = isLive;
    change.accept(copy);
    return copy;
  }

  /** A key whose value is {@code true} or {@code false}. */
  public static ConfigKey<Boolean> flag(String name) {
    return new ConfigKey<>(name, "true or false", false, ConfigKey::parseFlag);
  }

  /** A key whose value is a 32-bit integer. */
  public static ConfigKey<Integer> integer(String name) {
    return new ConfigKey<>(name, "an integer", 0, raw -> Math.toIntExact(parseLong(raw)))
        .range(Integer.MIN_VALUE, Integer.MAX_VALUE);
  }

  /** A key whose value is a 64-bit integer. */
  public static ConfigKey<Long> longInteger(String name) {
    return new ConfigKey<>(name, "an integer", 0L, ConfigKey::parseLong);
  }

  /** A key whose value is a number. */
  public static ConfigKey<Double> number(String name) {
    return new ConfigKey<>(name, "a number", 0.0, ConfigKey::parseDouble);
  }

  /** A key whose value is text. */
  public static ConfigKey<String> text(String name) {
    return new ConfigKey<>(name, "text", "", ConfigKey::parseText);
  }

  /** A key whose value is one of some words. */
  public static ConfigKey<String> choice(String name, String... words) {
    Set<String> allowed = new LinkedHashSet<>(List.of(words));
    return new ConfigKey<>(
        name,
        "one of " + String.join(", ", allowed),
        words[0],
        raw -> {
          String word = parseText(raw);
          if (!allowed.contains(word)) {
            throw new IllegalArgumentException(word);
          }
          return word;
        });
  }

  /**
   * A key whose value is one or more paths: a list, or one text with {@code :} between the paths.
   */
  public static ConfigKey<List<String>> paths(String name) {
    return new ConfigKey<>(
        name,
        "a path, several joined by ':', or a list of paths",
        List.of(),
        ConfigKey::parsePaths);
  }

  /** A key whose value is a list of 64-bit integers; the range holds for each. */
  public static ConfigKey<List<Long>> longIntegers(String name) {
    return new ConfigKey<>(
        name,
        "a list of integers",
        List.of(),
        raw -> {
          List<Long> values = new ArrayList<>();
          for (Object item : parseList(raw)) {
            values.add(parseLong(item));
          }
          return List.copyOf(values);
        });
  }

  /** This key with a default. */
  public ConfigKey<T> defaultTo(T value) {
    return defaultDescribed(show(value)).with(key -> key.defaultValue = value);
  }

  /**
   * This key with a default that depends on other keys.
   *
   * @param text how the reference page says it, for example {@code 256, or 32 when not shared}
   */
  public ConfigKey<T> defaultDescribed(String text) {
    return with(
        key -> {
          key.defaultValue = null;
          key.defaultText = text;
          key.required = false;
        });
  }

  /** This key, now one that must be set. */
  public ConfigKey<T> require() {
    return defaultDescribed("required").with(key -> key.required = true);
  }

  /** This key with bounds, both inclusive; for numbers, and for each number of a list. */
  public ConfigKey<T> range(double min, double max) {
    return with(
        key -> {
          key.min = min;
          key.isAboveMin = false;
          key.max = max;
        });
  }

  /** This key with a lower bound, inclusive. */
  public ConfigKey<T> atLeast(double min) {
    return range(min, max);
  }

  /** This key with a lower bound that is not allowed itself. */
  public ConfigKey<T> above(double bound) {
    return with(
        key -> {
          key.min = bound;
          key.isAboveMin = true;
        });
  }

  /** This key with an upper bound, inclusive. */
  public ConfigKey<T> atMost(double bound) {
    return with(key -> key.max = bound);
  }

  /** This key with a unit, for example {@code ms} or {@code bytes}. */
  public ConfigKey<T> unit(String unit) {
    return with(key -> key.unit = unit);
  }

  /** This key with its meaning, one or two sentences. */
  public ConfigKey<T> doc(String doc) {
    return with(key -> key.doc = doc);
  }

  /** This key with further names it is known by. */
  public ConfigKey<T> alias(String... names) {
    return with(key -> key.aliases = List.of(names));
  }

  /** This key, whose value may change in an open store: see {@link ucm.api.admin.Reloadable}. */
  public ConfigKey<T> live() {
    return with(key -> key.isLive = true);
  }

  /** Its name. */
  public String name() {
    return name;
  }

  /** Other names it is known by. */
  public List<String> aliases() {
    return aliases;
  }

  /** Whether it must be set. */
  public boolean required() {
    return required;
  }

  /** Its default, or null when it has none. */
  public @Nullable T defaultValue() {
    return defaultValue;
  }

  /** Its default in words. */
  public String defaultText() {
    return defaultText;
  }

  /** Whether its value may change in an open store. */
  public boolean isLive() {
    return isLive;
  }

  /** Its unit, or the empty text. */
  public String unit() {
    return unit;
  }

  /** Its meaning. */
  public String doc() {
    return doc;
  }

  /** What values are allowed, in words: type, range and unit. */
  public String allowed() {
    String range;
    if (min == Double.NEGATIVE_INFINITY && max == Double.POSITIVE_INFINITY) {
      range = "";
    } else if (isAboveMin) {
      String end = max == Double.POSITIVE_INFINITY ? "" : ", at most " + plain(max);
      range = ", more than " + plain(min) + end;
    } else if (max == Double.POSITIVE_INFINITY) {
      range = ", " + plain(min) + " or more";
    } else {
      range = ", " + plain(min) + " to " + plain(max);
    }
    return type + range + (unit.isEmpty() ? "" : " (" + unit + ")");
  }

  /**
   * Reads a value as it stands in YAML.
   *
   * @param raw a String, Long, Double, Boolean, or a List of these
   * @throws IllegalArgumentException when it has the wrong type or is out of range; the message names
   *     what was found and what is allowed
   */
  public T parse(Object raw) {
    T value;
    try {
      value = parser.apply(raw);
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw refusal(raw, e);
    }
    List<?> values = value instanceof List<?> list ? list : List.of(value);
    for (Object one : values) {
      if (one instanceof Number number && !isWithin(number.doubleValue())) {
        throw refusal(raw, null);
      }
    }
    return value;
  }

  private boolean isWithin(double number) {
    return (isAboveMin ? number > min : number >= min) && number <= max;
  }

  /** A value in place of a wrong one, so that checking can go on. */
  T fallback() {
    return defaultValue != null ? defaultValue : fallback;
  }

  private IllegalArgumentException refusal(Object raw, @Nullable Exception cause) {
    return new IllegalArgumentException("found " + show(raw) + "; allowed is " + allowed(), cause);
  }

  private static String show(Object value) {
    return switch (value) {
      case String text -> "\"" + text + "\"";
      case Double number -> plain(number);
      default -> value.toString();
    };
  }

  private static String plain(double bound) {
    return bound == Math.rint(bound) && Math.abs(bound) < 1e18
        ? Long.toString((long) bound)
        : Double.toString(bound);
  }

  private static Boolean parseFlag(Object raw) {
    if (raw instanceof Boolean flag) {
      return flag;
    }
    // YAML 1.1, which the original reads, has more words for the two.
    return switch (parseText(raw).toLowerCase(Locale.ROOT)) {
      case "true", "yes", "on" -> true;
      case "false", "no", "off" -> false;
      default -> throw new IllegalArgumentException("neither true nor false");
    };
  }

  private static Long parseLong(Object raw) {
    if (raw instanceof Long || raw instanceof Integer) {
      return ((Number) raw).longValue();
    }
    if (raw instanceof Double number && number == Math.rint(number) && Math.abs(number) < 1e15) {
      return number.longValue();
    }
    throw new IllegalArgumentException("not an integer");
  }

  private static Double parseDouble(Object raw) {
    if (raw instanceof Number number) {
      return number.doubleValue();
    }
    throw new IllegalArgumentException("not a number");
  }

  private static String parseText(Object raw) {
    if (raw instanceof List<?>) {
      throw new IllegalArgumentException("a list");
    }
    return raw.toString();
  }

  private static List<String> parsePaths(Object raw) {
    List<String> paths = new ArrayList<>();
    if (raw instanceof List<?> list) {
      for (Object item : list) {
        paths.add(parsePath(Objects.requireNonNull(item)));
      }
    } else {
      paths.addAll(List.of(parsePath(raw).split(":", -1)));
    }
    if (paths.isEmpty() || paths.stream().anyMatch(String::isBlank)) {
      throw new IllegalArgumentException("an empty path");
    }
    return List.copyOf(paths);
  }

  /** A number is taken for a mistake; a path of digits is written in quotes. The kernel takes no zero byte. */
  private static String parsePath(Object raw) {
    if (raw instanceof String text && text.indexOf(0) < 0) {
      return text;
    }
    throw new IllegalArgumentException("not a path");
  }

  private static List<?> parseList(Object raw) {
    if (raw instanceof List<?> list) {
      return list;
    }
    throw new IllegalArgumentException("not a list");
  }

  @Override
  public String toString() {
    return name;
  }
}

package ucm.api.config;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The configured values a store may read, and the place where it reports what is wrong with them.
 *
 * <p>Reading never throws for a user's mistake: a bad value is recorded and a fallback returned, so
 * that a store parses all of its keys, checks them against each other, and every fault is reported
 * together. Used by one thread.
 */
public final class StoreConfig {

  /**
   * A value as it was found.
   *
   * @param raw a String, Long, Double, Boolean, or a List of these
   * @param origin where
   */
  public record Value(Object raw, ConfigOrigin origin) {}

  private final Map<String, Value> values;
  private final Map<String, Object> suggestions;
  private final List<ConfigProblem> problems;
  private final Map<String, Value> settled;

  /** A view of these values, by key name. */
  public StoreConfig(Map<String, Value> values) {
    this(values, Map.of(), new ArrayList<>(), new LinkedHashMap<>());
  }

  private StoreConfig(
      Map<String, Value> values,
      Map<String, Object> suggestions,
      List<ConfigProblem> problems,
      Map<String, Value> settled) {
    this.values = Map.copyOf(values);
    this.suggestions = Map.copyOf(suggestions);
    this.problems = problems;
    this.settled = settled;
  }

  /** Values set by a program, for an engine or a test: integers, texts, flags or lists of them. */
  public static StoreConfig of(Map<String, ?> raw) {
    Map<String, Value> values = new LinkedHashMap<>();
    raw.forEach((key, value) -> values.put(key, new Value(value, ConfigOrigin.of("engine"))));
    return new StoreConfig(values);
  }

  /**
   * These values and others, which come first: for a store that builds on another one and knows some
   * of its keys by names of its own. What is wrong with them is recorded here as well as there.
   *
   * @param more by key name
   */
  public StoreConfig with(Map<String, Value> more) {
    Map<String, Value> all = new LinkedHashMap<>(values);
    all.putAll(more);
    return new StoreConfig(all, suggestions, problems, settled);
  }

  /**
   * These values, and what the stages below the reader suggest ({@code Store.suggestions}). What is
   * wrong is recorded here as well as there.
   *
   * @param suggested raw values by key name; takes the place of earlier suggestions
   */
  public StoreConfig withSuggestions(Map<String, Object> suggested) {
    return new StoreConfig(values, suggested, problems, settled);
  }

  /**
   * The value of a key, else its default. When the value is bad, or missing though required, an error
   * is recorded (once) and a fallback returned; a key without default that is not set gives a
   * fallback too (0, false, empty), so ask {@link #find} for those.
   */
  public <T> T get(ConfigKey<T> key) {
    return read(key).orElseGet(key::fallback);
  }

  /** The value of a key if it is set (and good); its default does not count. */
  public <T> Optional<T> find(ConfigKey<T> key) {
    return value(key) == null ? Optional.empty() : read(key);
  }

  /**
   * What a stage below suggests for a key; the value that the user set does not count. A suggestion
   * that the key does not allow is ignored.
   */
  public <T> Optional<T> suggestion(ConfigKey<T> key) {
    Object raw = suggestions.get(key.name());
    if (raw == null) {
      return Optional.empty();
    }
    try {
      return Optional.of(key.parse(raw));
    } catch (IllegalArgumentException _) {
      return Optional.empty();
    }
  }

  /** Whether a value was given for a key. */
  public boolean isSet(ConfigKey<?> key) {
    return value(key) != null;
  }

  /**
   * Notes the value that is in force for a key where that is not what was set, or the declared default: one
   * that depends on other keys or on the machine. For people, who are shown it; nothing reads it otherwise.
   */
  public <T> void settle(ConfigKey<T> key, T value) {
    settle(key.name(), value, origin(key));
  }

  /** The same for a value that comes from elsewhere, such as a key of another name. */
  public void settle(String key, Object value, ConfigOrigin from) {
    settled.put(key, new Value(value, from));
  }

  /** What {@link #settle} noted, by the names of keys; a copy. */
  public Map<String, Value> settled() {
    return new LinkedHashMap<>(settled);
  }

  /** Records an error about a key, for checks that concern several keys or the meaning of one. */
  public void reject(ConfigKey<?> key, String message) {
    record(ConfigProblem.Severity.ERROR, key, message);
  }

  /** Records a warning about a key. */
  public void warn(ConfigKey<?> key, String message) {
    record(ConfigProblem.Severity.WARNING, key, message);
  }

  /** All that was recorded so far, in order; a copy. */
  public List<ConfigProblem> problems() {
    return List.copyOf(problems);
  }

  /** Whether an error was recorded, so that the values must not be used. */
  public boolean hasErrors() {
    return problems.stream().anyMatch(ConfigProblem::isError);
  }

  /** Where the value of a key came from; {@code default} when it is not set. */
  public ConfigOrigin origin(ConfigKey<?> key) {
    Value value = value(key);
    return value == null ? ConfigOrigin.of("default") : value.origin();
  }

  private <T> Optional<T> read(ConfigKey<T> key) {
    Value value = value(key);
    if (value == null) {
      if (key.required()) {
        reject(key, "is required and not set; allowed is " + key.allowed());
      }
      return Optional.ofNullable(key.defaultValue());
    }
    try {
      return Optional.of(key.parse(value.raw()));
    } catch (IllegalArgumentException e) {
      reject(key, String.valueOf(e.getMessage()));
      return Optional.empty();
    }
  }

  private @Nullable Value value(ConfigKey<?> key) {
    Value value = values.get(key.name());
    for (String alias : key.aliases()) {
      value = value == null ? values.get(alias) : value;
    }
    return value;
  }

  private void record(ConfigProblem.Severity severity, ConfigKey<?> key, String message) {
    ConfigProblem problem = new ConfigProblem(severity, key.name(), message, origin(key));
    if (!problems.contains(problem)) {
      problems.add(problem);
    }
  }
}

package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.events.MappingEndEvent;
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.events.SequenceEndEvent;
import org.snakeyaml.engine.v2.events.SequenceStartEvent;
import org.snakeyaml.engine.v2.events.StreamEndEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.scanner.StreamReader;
import ucm.api.config.ConfigOrigin;
import ucm.pipeline.config.YamlNode.Entry;
import ucm.pipeline.config.YamlNode.YamlList;
import ucm.pipeline.config.YamlNode.YamlMap;
import ucm.pipeline.config.YamlNode.YamlScalar;

/**
 * Reads one YAML document into nodes that know their places.
 *
 * <p>Only what a configuration needs: maps, lists and plain values. Aliases and tags are refused, so
 * that a small file cannot stand for a huge one and nothing but data is ever made of it.
 */
public final class UcmYaml {

  private static final int MAX_DEPTH = 32;
  private static final LoadSettings SETTINGS = LoadSettings.builder().build();

  // Of the YAML 1.2 core schema, but that a number with zeros before it is a text.
  private static final Pattern WHOLE = Pattern.compile("[-+]?(0|[1-9][0-9]*)");
  private static final Pattern FRACTION =
      Pattern.compile("[-+]?(\\.[0-9]+|(0|[1-9][0-9]*)(\\.[0-9]*)?)([eE][-+]?[0-9]+)?");

  private final String source;
  private final Iterator<Event> events;

  private UcmYaml(String source, Iterator<Event> events) {
    this.source = source;
    this.events = events;
  }

  /**
   * Reads a document whose root is a map.
   *
   * @param source what precedes line and column in messages
   * @throws ConfigException when the text is anything else
   */
  public static YamlMap read(String source, String document) {
    String text = YamlText.withoutMark(document);
    YamlText.requireReadable(source, text);
    try {
      return new UcmYaml(source, new ParserImpl(SETTINGS, new StreamReader(SETTINGS, text)))
          .document();
    } catch (MarkedYamlEngineException e) {
      throw new ConfigException(origin(source, e.getProblemMark()), "is no YAML: " + explain(e));
    } catch (YamlEngineException e) {
      String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
      throw new ConfigException(ConfigOrigin.of(source), "is no YAML: " + message);
    }
  }

  private YamlMap document() {
    Event _ = events.next(); // The stream starts.
    if (events.next() instanceof StreamEndEvent) {
      throw new ConfigException(
          ConfigOrigin.of(source), "is empty; a configuration is a map of keys and values");
    }
    YamlNode root = node(events.next(), 0);
    if (!(root instanceof YamlMap map)) {
      throw new ConfigException(
          root.at(), "found " + root.kind() + "; a configuration is a map of keys and values");
    }
    Event _ = events.next(); // The document ends.
    if (!(events.next() instanceof StreamEndEvent)) {
      throw new ConfigException(
          at(events.next()), "a second document starts here; a configuration is one document");
    }
    return map;
  }

  private YamlNode node(Event event, int depth) {
    ConfigOrigin at = at(event);
    if (event instanceof AliasEvent alias) {
      throw new ConfigException(
          at,
          "found the alias *" + alias.getAlias() + "; write the value out, aliases are refused");
    }
    Optional<String> tag =
        switch (event) {
          case ScalarEvent scalar -> scalar.getTag();
          case MappingStartEvent map -> map.getTag();
          case SequenceStartEvent list -> list.getTag();
          default -> Optional.empty();
        };
    if (tag.isPresent()) {
      throw new ConfigException(
          at, "found the tag " + tag.get() + "; write the plain value, tags are refused");
    }
    if (depth > MAX_DEPTH) {
      throw new ConfigException(at, "is nested more than " + MAX_DEPTH + " deep");
    }
    return switch (event) {
      case MappingStartEvent _ -> map(at, depth);
      case SequenceStartEvent _ -> list(at, depth);
      case ScalarEvent scalar ->
          new YamlScalar(at, scalar.isPlain() ? plain(scalar.getValue()) : scalar.getValue());
      default -> throw new IllegalStateException("no node begins with " + event);
    };
  }

  private YamlMap map(ConfigOrigin at, int depth) {
    List<Entry> entries = new ArrayList<>();
    Map<String, ConfigOrigin> seen = new HashMap<>();
    for (Event key = events.next(); !(key instanceof MappingEndEvent); key = events.next()) {
      ConfigOrigin keyAt = at(key);
      if (!(key instanceof ScalarEvent scalar)) {
        throw new ConfigException(keyAt, "is no YAML: a key is plain text, not a list or a map");
      }
      ConfigOrigin earlier = seen.putIfAbsent(scalar.getValue(), keyAt);
      if (earlier != null) {
        throw new ConfigException(
            keyAt,
            "the key %s stands here and in line %s; keep one"
                .formatted(scalar.getValue(), earlier.line()));
      }
      entries.add(new Entry(scalar.getValue(), keyAt, node(events.next(), depth + 1)));
    }
    return new YamlMap(at, List.copyOf(entries));
  }

  private YamlList list(ConfigOrigin at, int depth) {
    List<YamlNode> items = new ArrayList<>();
    for (Event item = events.next(); !(item instanceof SequenceEndEvent); item = events.next()) {
      items.add(node(item, depth + 1));
    }
    return new YamlList(at, List.copyOf(items));
  }

  /** A number too large stays the text it is, so that a message can show it. */
  private static @Nullable Object plain(String text) {
    if (text.isEmpty() || text.equals("~") || text.equalsIgnoreCase("null")) {
      return null;
    }
    if (text.equals("true") || text.equals("false")) {
      return Boolean.valueOf(text);
    }
    try {
      if (WHOLE.matcher(text).matches()) {
        return Long.valueOf(text);
      }
    } catch (NumberFormatException e) {
      return text;
    }
    if (FRACTION.matcher(text).matches()) {
      Double number = Double.valueOf(text);
      return number.isInfinite() ? text : number;
    }
    return text;
  }

  private ConfigOrigin at(Event event) {
    return origin(source, event.getStartMark());
  }

  private static ConfigOrigin origin(String source, Optional<Mark> mark) {
    return mark.map(at -> new ConfigOrigin(source, at.getLine() + 1, at.getColumn() + 1))
        .orElse(ConfigOrigin.of(source));
  }

  private static String explain(MarkedYamlEngineException fault) {
    String problem = String.valueOf(fault.getProblem());
    if (problem.contains("(TAB)")) {
      return "found a tab; YAML is indented with blanks";
    }
    if (problem.startsWith("mapping values are not allowed")) {
      return "found a ':' where none is allowed; quote the value, or check how the line is"
          + " indented";
    }
    String context = String.valueOf(fault.getContext());
    return fault.getContext() == null ? problem : context + ", " + problem;
  }
}

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
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.events.SequenceStartEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Tag;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.resolver.JsonScalarResolver;
import org.snakeyaml.engine.v2.resolver.ScalarResolver;
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
  private static final ScalarResolver TYPES = new JsonScalarResolver();

  // Numbers of the YAML 1.2 core schema that JSON does not have.
  private static final Pattern SIGNED = Pattern.compile("\\+[0-9]+");
  private static final Pattern FRACTION = Pattern.compile("[-+]?\\.[0-9]+([eE][-+]?[0-9]+)?");

  private final String source;
  private final Iterator<Event> events;

  private UcmYaml(String source, String text) {
    this.source = source;
    this.events = new ParserImpl(SETTINGS, new StreamReader(SETTINGS, text));
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
      return new UcmYaml(source, text).document();
    } catch (MarkedYamlEngineException e) {
      throw new ConfigException(origin(source, e.getProblemMark()), "is no YAML: " + explain(e));
    } catch (YamlEngineException e) {
      throw new ConfigException(ConfigOrigin.of(source), "is no YAML: " + e.getMessage());
    }
  }

  private YamlMap document() {
    Event first = nextContent();
    if (first.getEventId() == Event.ID.StreamEnd) {
      throw new ConfigException(
          ConfigOrigin.of(source), "is empty; a configuration is a map of keys and values");
    }
    YamlNode root = node(first, 0);
    if (!(root instanceof YamlMap map)) {
      throw new ConfigException(
          root.at(), "found " + root.kind() + "; a configuration is a map of keys and values");
    }
    Event next = nextContent();
    if (next.getEventId() != Event.ID.StreamEnd) {
      throw new ConfigException(
          at(next), "a second document starts here; a configuration is one document");
    }
    return map;
  }

  /** The next event but those of the begin of the stream, and of begin and end of a document. */
  private Event nextContent() {
    Event event = events.next();
    return switch (event.getEventId()) {
      case StreamStart, DocumentStart, DocumentEnd -> nextContent();
      default -> event;
    };
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
          default -> throw new IllegalStateException("found " + event);
        };
    if (tag.isPresent()) {
      String name = tag.get().replaceFirst("^!+", "");
      throw new ConfigException(
          at, "found the tag " + name + "; write the plain value, tags are refused");
    }
    if (depth > MAX_DEPTH) {
      throw new ConfigException(at, "is nested more than " + MAX_DEPTH + " deep");
    }
    return switch (event) {
      case ScalarEvent scalar -> new YamlScalar(at, value(scalar));
      case MappingStartEvent _ -> map(at, depth);
      default -> list(at, depth);
    };
  }

  private YamlMap map(ConfigOrigin at, int depth) {
    List<Entry> entries = new ArrayList<>();
    Map<String, ConfigOrigin> seen = new HashMap<>();
    Event event = events.next();
    while (event.getEventId() != Event.ID.MappingEnd) {
      if (!(event instanceof ScalarEvent key)) {
        throw new ConfigException(
            origin(source, event.getEndMark()),
            "is no YAML: a key is plain text, not a list or a map");
      }
      String name = key.getValue();
      ConfigOrigin keyAt = at(key);
      ConfigOrigin earlier = seen.putIfAbsent(name, keyAt);
      if (earlier != null) {
        throw new ConfigException(
            keyAt, "the key " + name + " stands here and in line " + earlier.line() + "; keep one");
      }
      entries.add(new Entry(name, keyAt, node(events.next(), depth + 1)));
      event = events.next();
    }
    return new YamlMap(at, List.copyOf(entries));
  }

  private YamlList list(ConfigOrigin at, int depth) {
    List<YamlNode> items = new ArrayList<>();
    Event event = events.next();
    while (event.getEventId() != Event.ID.SequenceEnd) {
      items.add(node(event, depth + 1));
      event = events.next();
    }
    return new YamlList(at, List.copyOf(items));
  }

  /** A number too large stays the text it is, so that a message can show it. */
  private static @Nullable Object value(ScalarEvent scalar) {
    String text = scalar.getValue();
    if (!scalar.isPlain()) {
      return text;
    }
    Tag type = TYPES.resolve(text, true);
    if (type.equals(Tag.NULL) || text.equals("~") || text.equalsIgnoreCase("null")) {
      return null;
    }
    if (type.equals(Tag.BOOL)) {
      return Boolean.valueOf(text);
    }
    try {
      if (type.equals(Tag.INT) || SIGNED.matcher(text).matches()) {
        return Long.valueOf(text);
      }
      if (type.equals(Tag.FLOAT) || FRACTION.matcher(text).matches()) {
        Double number = Double.valueOf(text);
        return Double.isFinite(number) ? number : text;
      }
    } catch (NumberFormatException e) {
      return text;
    }
    return text;
  }

  private ConfigOrigin at(Event event) {
    return origin(source, event.getStartMark());
  }

  private static ConfigOrigin origin(String source, Optional<Mark> mark) {
    return mark.map(at -> new ConfigOrigin(source, at.getLine() + 1, at.getColumn() + 1))
        .orElseGet(() -> ConfigOrigin.of(source));
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
    return fault.getContext() == null ? problem : fault.getContext() + ", " + problem;
  }
}

package ucm.pipeline.yaml;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.CollectionStartEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.events.MappingStartEvent;
import org.snakeyaml.engine.v2.events.ScalarEvent;
import org.snakeyaml.engine.v2.events.SequenceStartEvent;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.parser.Parser;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.scanner.StreamReader;
import ucm.api.config.ConfigOrigin;
import ucm.pipeline.yaml.YamlNode.Entry;
import ucm.pipeline.yaml.YamlNode.YamlList;
import ucm.pipeline.yaml.YamlNode.YamlMap;
import ucm.pipeline.yaml.YamlNode.YamlScalar;

/**
 * Reads one YAML document into nodes that know their places.
 *
 * <p>Only what a configuration needs: maps, lists and plain values. Aliases and tags are refused, so
 * that a small file cannot stand for a huge one and nothing but data is ever made of it.
 */
public final class UcmYaml {

  private static final int MAX_DEPTH = 32;
  private static final String ROOT = "; a configuration is a map of keys and values";
  private static final Pattern WHOLE = Pattern.compile("[-+]?(0|[1-9][0-9]*)");
  private static final Pattern FRACTION =
      Pattern.compile("[-+]?(\\.[0-9]+|[0-9]+\\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?");

  private final String source;
  private final Parser events;

  private UcmYaml(String source, String text) {
    this.source = source;
    LoadSettings settings = LoadSettings.builder().build();
    this.events = new ParserImpl(settings, new StreamReader(settings, text));
  }

  /**
   * Reads a document whose root is a map.
   *
   * @param source what precedes line and column in messages
   * @throws YamlSyntaxException when the text is anything else
   */
  public static YamlMap read(String source, String text) throws YamlSyntaxException {
    YamlText.requireReadable(source, text);
    try {
      return new UcmYaml(source, text).document();
    } catch (YamlEngineException e) {
      throw syntax(source, e);
    }
  }

  private YamlMap document() throws YamlSyntaxException {
    events.next(); // The stream begins.
    if (events.next().getEventId() == Event.ID.StreamEnd) {
      throw new YamlSyntaxException(ConfigOrigin.of(source), "is empty" + ROOT);
    }
    YamlNode root = node(events.next(), 0);
    if (!(root instanceof YamlMap map)) {
      throw new YamlSyntaxException(root.at(), "found " + root.kind() + ROOT);
    }
    events.next(); // The document ends.
    Event next = events.next();
    if (next.getEventId() != Event.ID.StreamEnd) {
      throw new YamlSyntaxException(
          origin(source, next.getStartMark()),
          "a second document starts here; a configuration is one document");
    }
    return map;
  }

  private YamlNode node(Event event, int depth) throws YamlSyntaxException {
    ConfigOrigin at = origin(source, event.getStartMark());
    refuseAliasAndTag(event, at);
    if (depth > MAX_DEPTH) {
      throw new YamlSyntaxException(at, "is nested more than " + MAX_DEPTH + " deep");
    }
    return switch (event) {
      case MappingStartEvent _ -> map(at, depth);
      case SequenceStartEvent _ -> list(at, depth);
      case ScalarEvent scalar ->
          new YamlScalar(at, scalar.isPlain() ? plain(scalar.getValue()) : scalar.getValue());
      default -> throw new IllegalStateException("no node begins with " + event);
    };
  }

  private static void refuseAliasAndTag(Event event, ConfigOrigin at) throws YamlSyntaxException {
    if (event instanceof AliasEvent alias) {
      throw new YamlSyntaxException(
          at,
          "found the alias *%s; write the value out, aliases are refused"
              .formatted(alias.getAlias()));
    }
    Optional<String> tag =
        switch (event) {
          case CollectionStartEvent collection -> collection.getTag();
          case ScalarEvent scalar -> scalar.getTag();
          default -> Optional.empty();
        };
    if (tag.isPresent()) {
      throw new YamlSyntaxException(
          at, "found the tag %s; write the plain value, tags are refused".formatted(tag.get()));
    }
  }

  private YamlMap map(ConfigOrigin at, int depth) throws YamlSyntaxException {
    Map<String, Entry> entries = new LinkedHashMap<>();
    for (Event event = events.next();
        event.getEventId() != Event.ID.MappingEnd;
        event = events.next()) {
      ConfigOrigin keyAt = origin(source, event.getStartMark());
      refuseAliasAndTag(event, keyAt);
      if (!(event instanceof ScalarEvent scalar)) {
        throw new YamlSyntaxException(
            keyAt, "is no YAML: a key is plain text, not a list or a map");
      }
      String key = scalar.getValue();
      Entry earlier = entries.get(key);
      if (earlier != null) {
        throw new YamlSyntaxException(
            keyAt,
            "the key %s stands here and in line %s; keep one".formatted(key, earlier.at().line()));
      }
      entries.put(key, new Entry(key, keyAt, node(events.next(), depth + 1)));
    }
    return new YamlMap(at, List.copyOf(entries.values()));
  }

  private YamlList list(ConfigOrigin at, int depth) throws YamlSyntaxException {
    List<YamlNode> items = new ArrayList<>();
    for (Event event = events.next();
        event.getEventId() != Event.ID.SequenceEnd;
        event = events.next()) {
      items.add(node(event, depth + 1));
    }
    return new YamlList(at, List.copyOf(items));
  }

  /** The value of a word without quotes. A number too large stays text, so that a message can show it. */
  private static @Nullable Object plain(String text) {
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
    return switch (text) {
      case "true" -> true;
      case "false" -> false;
      case "", "~" -> null;
      default -> text.equalsIgnoreCase("null") ? null : text;
    };
  }

  private static ConfigOrigin origin(String source, Optional<Mark> mark) {
    return mark.map(at -> new ConfigOrigin(source, at.getLine() + 1, at.getColumn() + 1))
        .orElseGet(() -> ConfigOrigin.of(source));
  }

  private static YamlSyntaxException syntax(String source, YamlEngineException fault) {
    if (fault instanceof MarkedYamlEngineException marked) {
      return new YamlSyntaxException(
          origin(source, marked.getProblemMark()), "is no YAML: " + explain(marked));
    }
    String message = String.valueOf(fault.getMessage()).lines().findFirst().orElse("");
    return new YamlSyntaxException(ConfigOrigin.of(source), "is no YAML: " + message);
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

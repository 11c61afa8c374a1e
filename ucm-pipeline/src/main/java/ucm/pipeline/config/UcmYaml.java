package ucm.pipeline.config;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.TokenStreamLocation;
import tools.jackson.dataformat.yaml.YAMLFactory;
import tools.jackson.dataformat.yaml.YAMLParser;
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
  private static final YAMLFactory FACTORY = YAMLFactory.builder().build();

  // Numbers of the YAML 1.2 core schema that the parser takes for text.
  private static final Pattern SIGNED = Pattern.compile("\\+[0-9]+");
  private static final Pattern FRACTION = Pattern.compile("[-+]?\\.[0-9]+([eE][-+]?[0-9]+)?");

  private final String source;
  private final String[] lines;
  private final YAMLParser parser;

  private UcmYaml(String source, String text, YAMLParser parser) {
    this.source = source;
    this.lines = text.split("\\R", -1);
    this.parser = parser;
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
    try (JsonParser parser = FACTORY.createParser(ObjectReadContext.empty(), text)) {
      return new UcmYaml(source, text, (YAMLParser) parser).document();
    } catch (JacksonException e) {
      throw syntax(source, e);
    }
  }

  private YamlMap document() {
    JsonToken first = parser.nextToken();
    if (first == null) {
      throw new ConfigException(
          ConfigOrigin.of(source), "is empty; a configuration is a map of keys and values");
    }
    YamlNode root = node(first, 0);
    if (!(root instanceof YamlMap map)) {
      throw new ConfigException(
          root.at(), "found " + root.kind() + "; a configuration is a map of keys and values");
    }
    if (parser.nextToken() != null) {
      throw new ConfigException(
          here(), "a second document starts here; a configuration is one document");
    }
    return map;
  }

  private YamlNode node(@Nullable JsonToken token, int depth) {
    ConfigOrigin at = here();
    if (parser.isCurrentAlias()) {
      throw new ConfigException(
          at,
          "found the alias *" + parser.getString() + "; write the value out, aliases are refused");
    }
    if (parser.getTypeId() != null) {
      throw new ConfigException(
          at, "found the tag " + parser.getTypeId() + "; write the plain value, tags are refused");
    }
    if (depth > MAX_DEPTH) {
      throw new ConfigException(at, "is nested more than " + MAX_DEPTH + " deep");
    }
    return switch (token) {
      case START_OBJECT -> map(at, depth);
      case START_ARRAY -> list(at, depth);
      case null, default -> new YamlScalar(at, scalar(token, at));
    };
  }

  private YamlMap map(ConfigOrigin at, int depth) {
    List<Entry> entries = new ArrayList<>();
    Map<String, ConfigOrigin> seen = new HashMap<>();
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String key = parser.currentName();
      ConfigOrigin keyAt = here();
      ConfigOrigin earlier = seen.putIfAbsent(key, keyAt);
      if (earlier != null) {
        throw new ConfigException(
            keyAt, "the key " + key + " stands here and in line " + earlier.line() + "; keep one");
      }
      entries.add(new Entry(key, keyAt, node(parser.nextToken(), depth + 1)));
    }
    return new YamlMap(at, List.copyOf(entries));
  }

  private YamlList list(ConfigOrigin at, int depth) {
    List<YamlNode> items = new ArrayList<>();
    for (JsonToken token = parser.nextToken();
        token != JsonToken.END_ARRAY;
        token = parser.nextToken()) {
      items.add(node(token, depth + 1));
    }
    return new YamlList(at, List.copyOf(items));
  }

  private @Nullable Object scalar(@Nullable JsonToken token, ConfigOrigin at) {
    if (token == null || token == JsonToken.VALUE_NULL) {
      return null;
    }
    String text = parser.getString();
    return switch (token) {
      case VALUE_TRUE -> true;
      case VALUE_FALSE -> false;
      case VALUE_NUMBER_INT -> whole(text);
      case VALUE_NUMBER_FLOAT -> fraction(text);
      default -> isQuoted(at) ? text : plain(text);
    };
  }

  private static @Nullable Object plain(String text) {
    if (text.equals("~") || text.equalsIgnoreCase("null")) {
      return null;
    }
    if (SIGNED.matcher(text).matches()) {
      return whole(text);
    }
    return FRACTION.matcher(text).matches() ? fraction(text) : text;
  }

  /** A number too large stays the text it is, so that a message can show it. */
  private static Object whole(String text) {
    try {
      return Long.valueOf(text);
    } catch (NumberFormatException e) {
      return text;
    }
  }

  private static Object fraction(String text) {
    try {
      Double number = Double.valueOf(text);
      return number.isInfinite() || number.isNaN() ? text : number;
    } catch (NumberFormatException e) {
      return text;
    }
  }

  private boolean isQuoted(ConfigOrigin at) {
    String line = at.line() <= lines.length ? lines[at.line() - 1] : "";
    char first = at.column() <= line.length() ? line.charAt(at.column() - 1) : ' ';
    return first == '"' || first == '\'';
  }

  private ConfigOrigin here() {
    return origin(source, parser.currentTokenLocation());
  }

  private static ConfigOrigin origin(String source, @Nullable TokenStreamLocation location) {
    return location == null
        ? ConfigOrigin.of(source)
        : new ConfigOrigin(source, location.getLineNr(), location.getColumnNr());
  }

  private static ConfigException syntax(String source, JacksonException fault) {
    if (fault.getCause() instanceof MarkedYamlEngineException marked
        && marked.getProblemMark().isPresent()) {
      Mark mark = marked.getProblemMark().get();
      ConfigOrigin at = new ConfigOrigin(source, mark.getLine() + 1, mark.getColumn() + 1);
      return new ConfigException(at, "is no YAML: " + explain(marked));
    }
    String message = String.valueOf(fault.getOriginalMessage()).lines().findFirst().orElse("");
    if (message.startsWith("Expected a property name")) {
      message = "a key is plain text, not a list or a map";
    }
    return new ConfigException(origin(source, fault.getLocation()), "is no YAML: " + message);
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

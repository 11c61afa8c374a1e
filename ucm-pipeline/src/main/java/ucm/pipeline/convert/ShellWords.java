package ucm.pipeline.convert;

import java.util.ArrayList;
import java.util.List;
import ucm.api.config.ConfigOrigin;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.YamlText;

/**
 * The words of a shell script, an environment file or a list of container settings: quotes are taken off, comments
 * and the ends of lines with a backslash left out. Nothing is expanded.
 */
public final class ShellWords {

  /** A word and where it starts. */
  public record Word(String text, ConfigOrigin at) {}

  private final String source;
  private final String text;
  private final List<Word> words = new ArrayList<>();
  private int next;
  private int line = 1;
  private int lineStart;

  private ShellWords(String source, String text) {
    this.source = source;
    this.text = text;
  }

  /**
   * Splits a text.
   *
   * @throws ConfigException when it is no text, or a quote is not closed
   */
  public static List<Word> read(String source, String text) {
    YamlText.requireReadable(source, text);
    ShellWords reader = new ShellWords(source, text);
    reader.read();
    return List.copyOf(reader.words);
  }

  private void read() {
    while (next < text.length()) {
      char c = text.charAt(next);
      if (c == '#') {
        int end = text.indexOf('\n', next);
        next = end < 0 ? text.length() : end;
      } else if (isSeparator(c) || isContinuation()) {
        skip();
      } else {
        word();
      }
    }
  }

  private void word() {
    ConfigOrigin at = here();
    StringBuilder word = new StringBuilder();
    while (next < text.length() && !isSeparator(text.charAt(next)) && !isContinuation()) {
      char c = text.charAt(next);
      if (c == '\'' || c == '"') {
        quoted(c, word);
      } else {
        next += c == '\\' ? 1 : 0;
        word.append(text.charAt(next++));
      }
    }
    words.add(new Word(word.toString(), at));
  }

  private void quoted(char quote, StringBuilder word) {
    ConfigOrigin at = here();
    next++;
    while (next < text.length() && text.charAt(next) != quote) {
      if (quote == '"' && text.charAt(next) == '\\' && next + 1 < text.length()) {
        next++;
      }
      word.append(text.charAt(next));
      skip();
    }
    if (next == text.length()) {
      throw new ConfigException(at, "this quote is not closed");
    }
    next++;
    // In a list of JSON a comma follows.
    if (next < text.length() && text.charAt(next) == ',') {
      next++;
    }
  }

  private static boolean isSeparator(char c) {
    return Character.isWhitespace(c) || c == ';' || c == '&';
  }

  private boolean isContinuation() {
    return text.charAt(next) == '\\'
        && (next + 1 == text.length() || "\r\n".indexOf(text.charAt(next + 1)) >= 0);
  }

  private void skip() {
    if (text.charAt(next++) == '\n') {
      line++;
      lineStart = next;
    }
  }

  private ConfigOrigin here() {
    return new ConfigOrigin(source, line, next - lineStart + 1);
  }
}

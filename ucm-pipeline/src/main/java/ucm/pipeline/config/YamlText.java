package ucm.pipeline.config;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import ucm.api.config.ConfigOrigin;
import ucm.lite.trace.FileFault;

/** The text of a configuration file, before it is parsed. */
public final class YamlText {

  /** A file that is longer was probably named by mistake. */
  static final int MAX_BYTES = 1 << 20;

  private YamlText() {}

  /** Reads a file of UTF-8 text. */
  public static String read(Path file) {
    ConfigOrigin at = ConfigOrigin.of(file.toString());
    if (Files.isDirectory(file)) {
      throw new ConfigException(at, "is a directory; name a file");
    }
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      // A pipe would hold us until it is written to.
      throw new ConfigException(at, "is a pipe or a device; name a regular file");
    }
    byte[] bytes;
    try (InputStream in = Files.newInputStream(file)) {
      bytes = in.readNBytes(MAX_BYTES + 1);
    } catch (NoSuchFileException e) {
      throw new ConfigException(at, "there is no such file");
    } catch (IOException e) {
      throw new ConfigException(at, "cannot be read: " + FileFault.of(e));
    }
    requireSize(at, bytes.length, "bytes");
    CharBuffer out = CharBuffer.allocate(bytes.length);
    boolean isBad =
        StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes), out, true).isError();
    String text = out.flip().toString();
    if (isBad) {
      throw new ConfigException(
          position(at.source(), text, text.length()), "is no UTF-8 text from here on");
    }
    return withoutMark(text);
  }

  /** The same text without the byte order mark that some editors begin a file with. */
  static String withoutMark(String text) {
    return text.startsWith("\uFEFF") ? text.substring(1) : text;
  }

  /** Refuses text with characters that YAML does not allow, as binary files have. */
  public static void requireReadable(String source, String text) {
    requireSize(ConfigOrigin.of(source), text.length(), "characters");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean layout = c == '\n' || c == '\r' || c == '\t' || c == '\u0085';
      if ((Character.isISOControl(c) && !layout) || c >= '\uFFFE') {
        throw new ConfigException(
            position(source, text, i),
            "found the character U+%04X, which no YAML has; is this a text file?"
                .formatted((int) c));
      }
    }
  }

  private static void requireSize(ConfigOrigin at, int size, String unit) {
    if (size > MAX_BYTES) {
      throw new ConfigException(
          at, "is larger than %s %s, which no configuration is".formatted(MAX_BYTES, unit));
    }
  }

  private static ConfigOrigin position(String source, String text, int index) {
    String before = text.substring(0, index);
    int line = 1 + (int) before.chars().filter(c -> c == '\n').count();
    return new ConfigOrigin(source, line, index - before.lastIndexOf('\n'));
  }
}

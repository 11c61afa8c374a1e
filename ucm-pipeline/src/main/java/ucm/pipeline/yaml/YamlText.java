package ucm.pipeline.yaml;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import ucm.api.config.ConfigOrigin;
import ucm.lite.trace.FileFault;

/** The text of a configuration file, before it is parsed as YAML. */
public final class YamlText {

  private YamlText() {}

  /** Reads a file of UTF-8 text. */
  public static String read(Path file) throws YamlSyntaxException {
    ConfigOrigin at = ConfigOrigin.of(file.toString());
    if (Files.exists(file) && !Files.isRegularFile(file) && !Files.isDirectory(file)) {
      // A pipe would hold us until it is written to.
      throw new YamlSyntaxException(at, "is a pipe or a device; name a regular file");
    }
    byte[] bytes;
    try (InputStream in = Files.newInputStream(file)) {
      bytes = in.readNBytes(UcmYaml.MAX_BYTES + 1);
    } catch (NoSuchFileException e) {
      throw new YamlSyntaxException(at, "there is no such file");
    } catch (IOException e) {
      String what =
          Files.isDirectory(file)
              ? "is a directory; name a file"
              : "cannot be read: " + FileFault.of(e);
      throw new YamlSyntaxException(at, what);
    }
    if (bytes.length > UcmYaml.MAX_BYTES) {
      throw new YamlSyntaxException(
          at, "is larger than " + UcmYaml.MAX_BYTES + " bytes, which no configuration is");
    }
    return decode(file.toString(), bytes);
  }

  private static String decode(String source, byte[] bytes) throws YamlSyntaxException {
    CharsetDecoder decoder =
        StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    ByteBuffer in = ByteBuffer.wrap(bytes);
    CharBuffer out = CharBuffer.allocate(bytes.length);
    CoderResult result = decoder.decode(in, out, true);
    String text = out.flip().toString();
    if (result.isError()) {
      throw new YamlSyntaxException(
          position(source, text, text.length()), "is no UTF-8 text from here on");
    }
    return text.startsWith("\uFEFF") ? text.substring(1) : text;
  }

  /** Refuses text with characters that YAML does not allow, as binary files have. */
  static void requireReadable(String source, String text) throws YamlSyntaxException {
    if (text.length() > UcmYaml.MAX_BYTES) {
      throw new YamlSyntaxException(
          ConfigOrigin.of(source),
          "is larger than " + UcmYaml.MAX_BYTES + " characters, which no configuration is");
    }
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean layout = c == '\n' || c == '\r' || c == '\t' || c == '\u0085';
      if ((Character.isISOControl(c) && !layout) || c >= '\uFFFE') {
        throw new YamlSyntaxException(
            position(source, text, i),
            "found the character U+%04X, which no YAML has; is this a text file?"
                .formatted((int) c));
      }
    }
  }

  private static ConfigOrigin position(String source, String text, int index) {
    String before = text.substring(0, index);
    int line = 1 + (int) before.chars().filter(c -> c == '\n').count();
    return new ConfigOrigin(source, line, index - before.lastIndexOf('\n'));
  }
}

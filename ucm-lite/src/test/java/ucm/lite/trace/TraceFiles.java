package ucm.lite.trace;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;

/** Trace lines and files for tests. */
public final class TraceFiles {
  static final String MOONCAKE =
      "{\"timestamp\": 27, \"input_length\": 1100, \"output_length\": 52, \"hash_ids\": [46, 47,"
          + " 2353]}";
  static final String BAILIAN =
      "{\"chat_id\": 159, \"parent_chat_id\": 55, \"timestamp\": 61.114, \"input_length\": 33,"
          + " \"output_length\": 132, \"type\": \"text\", \"turn\": 2, \"hash_ids\": [1089, 1090,"
          + " 6326]}";
  static final String UCM =
      "timestamp: 12.5, input_length: 300, output_length: 64, ucm_block_ids:"
          + " ['000102030405060708090a0b0c0d0e0f', 'B76b82eeab7a7f89935624e71b78cda6']";

  private TraceFiles() {}

  static String text(String... lines) {
    return String.join("\n", lines) + "\n";
  }

  public static String write(Path directory, String name, String... lines) {
    return write(directory, name, text(lines).getBytes(StandardCharsets.UTF_8));
  }

  public static String write(Path directory, String name, byte[] bytes) {
    try {
      return Files.write(directory.resolve(name), bytes).toString();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static byte[] gzip(String text) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream gzip = new GZIPOutputStream(bytes)) {
      gzip.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }
}

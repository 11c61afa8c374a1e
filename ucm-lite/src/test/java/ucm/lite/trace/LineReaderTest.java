package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class LineReaderTest {
  @Test
  void cutsLinesWhereverTheChunksOfTheStreamEnd() throws IOException {
    String text = "a\n\nbc\r\n" + "x".repeat(300_000) + "\nlast";
    for (int chunk : new int[] {1, 2, 3, 1000, 1 << 20}) {
      assertThat(lines(text, chunk, 1 << 20))
          .containsExactly("a", "", "bc\r", "x".repeat(300_000), "last");
    }
  }

  @Test
  void endsWithoutALineAfterTheLastNewline() throws IOException {
    assertThat(lines("a\n", 10, 64)).containsExactly("a");
    assertThat(lines("", 10, 64)).isEmpty();
    assertThat(lines("\n", 10, 64)).containsExactly("");
  }

  @Test
  void passesOverLinesLongerThanTheBoundAndGoesOn() throws IOException {
    for (int chunk : new int[] {1, 7, 64, 65, 1000}) {
      String fits = "y".repeat(64);
      String text = "a\n" + "x".repeat(65) + "\n" + fits + "\n" + "z".repeat(1000);
      assertThat(lines(text, chunk, 64)).containsExactly("a", "(too long)", fits, "(too long)");
    }
  }

  @Test
  void passesOverALineOfAWholeNumberOfBuffers() throws IOException {
    for (int length = 60; length < 200; length++) {
      assertThat(lines("x".repeat(length) + "\nb", 65, 64))
          .containsExactly(length > 64 ? "(too long)" : "x".repeat(length), "b");
    }
  }

  private static List<String> lines(String text, int chunk, int maxLineBytes) throws IOException {
    LineReader reader = new LineReader(inChunks(text, chunk), maxLineBytes);
    List<String> lines = new ArrayList<>();
    while (reader.next()) {
      lines.add(
          reader.tooLong()
              ? "(too long)"
              : new String(reader.bytes(), 0, reader.length(), StandardCharsets.UTF_8));
      assertThat(reader.number()).isEqualTo(lines.size());
    }
    return lines;
  }

  private static InputStream inChunks(String text, int chunk) {
    return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8)) {
      @Override
      public int read(byte[] target, int offset, int length) {
        return super.read(target, offset, Math.min(length, chunk));
      }
    };
  }
}

package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Files that are written or cut while they are read. */
class ChangingFileTest {
  private static final int LINES = 20_000;
  private static final long BYTES = LINES * 89L;

  @TempDir private Path directory;
  private final CollectingVisitor visitor = new CollectingVisitor();

  @Test
  void refusesAFileThatIsCutOffWhileItIsRead() {
    String file = bigFile();

    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> new TraceReader().read(List.of(file), _ -> cut(file, 10_000)))
        .withMessageStartingWith(file + " cannot be read: ")
        .withMessageContaining("it was cut off while it was read")
        .withMessageContaining("read it again when nothing writes it");
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 4096, 300_000, (1 << 18) + 17, 1_000_000, BYTES - 10})
  void readsNothingBehindACut(long left) {
    String file = bigFile();

    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(
            () ->
                new TraceReader()
                    .read(
                        List.of(file),
                        request -> {
                          cut(file, left);
                          visitor.request(request);
                        }))
        .withMessageStartingWith(file + " cannot be read: ")
        .withMessageContaining("cut off");
    assertThat(visitor.requests)
        .allSatisfy(request -> assertThat(request.inputTokens()).isEqualTo(1100));
  }

  @Test
  void endsWhereAFileEndedWhenItWasOpened() {
    String file = bigFile();

    TraceReadReport report =
        new TraceReader()
            .read(
                List.of(file),
                request -> {
                  append(file, TraceFiles.MOONCAKE + "\n");
                  visitor.request(request);
                });

    assertThat(visitor.requests).hasSize(LINES);
    assertThat(report.badLines()).isZero();
  }

  @Test
  void closesTheFileHoweverTheReadingEnds() throws IOException {
    String file = bigFile();
    new TraceReader().read(List.of(file), _ -> {});
    assertThatThrownBy(
            () ->
                new TraceReader()
                    .read(
                        List.of(file),
                        _ -> {
                          throw new IllegalStateException("enough");
                        }))
        .hasMessage("enough");
    try (var links = Files.list(Path.of("/proc/self/fd"))) {
      assertThat(links.filter(link -> leadsTo(link, file))).isEmpty();
    }
  }

  @Test
  void streamsFilesThatSayTheyAreEmpty() {
    // In /proc; it is no trace, but what it holds was looked at.
    assertThatExceptionOfType(TraceException.class)
        .isThrownBy(() -> new TraceReader().read(List.of("/proc/version"), visitor))
        .withMessageContaining("no trace record in 1 line");
  }

  private String bigFile() {
    return TraceFiles.write(
        directory,
        "big.jsonl",
        (TraceFiles.MOONCAKE + "\n").repeat(LINES).getBytes(StandardCharsets.UTF_8));
  }

  private static boolean leadsTo(Path link, String file) {
    try {
      return Files.readSymbolicLink(link).toString().equals(file);
    } catch (IOException e) {
      // The descriptor of the listing itself is gone.
      return false;
    }
  }

  private static void cut(String file, long left) {
    try (FileChannel channel = FileChannel.open(Path.of(file), StandardOpenOption.WRITE)) {
      channel.truncate(left);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void append(String file, String text) {
    try {
      Files.writeString(Path.of(file), text, StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}

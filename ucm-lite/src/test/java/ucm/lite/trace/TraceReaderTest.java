package ucm.lite.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where traces come from; {@link TraceFormatTest} has what is in them. */
class TraceReaderTest {
  private static final String SECOND = TraceFiles.MOONCAKE.replace("27", "28");
  private static final String THIRD = TraceFiles.MOONCAKE.replace("27", "29");

  @TempDir Path directory;
  private final CollectingVisitor visitor = new CollectingVisitor();

  @Test
  void readsSeveralFilesInTheOrderGiven() {
    String b = TraceFiles.write(directory, "b", TraceFiles.MOONCAKE);
    String a = TraceFiles.write(directory, "a", SECOND, "", THIRD);

    TraceReadReport report = new TraceReader().read(List.of(b, a), visitor);

    assertThat(times()).containsExactly(27.0, 28.0, 29.0);
    assertThat(report.inputs()).containsExactly(b, a);
    assertThat(report.badLines()).isZero();
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void readsTheFilesOfADirectoryInNameOrder() throws IOException {
    TraceFiles.write(directory, "2.jsonl.gz", TraceFiles.gzip(TraceFiles.text(SECOND)));
    // Compressed, but not removed yet.
    TraceFiles.write(directory, "2.jsonl", SECOND);
    TraceFiles.write(directory, "1.jsonl", TraceFiles.MOONCAKE);
    TraceFiles.write(directory, "3", THIRD);
    TraceFiles.write(directory, ".hidden", "not looked at");
    Files.createDirectory(directory.resolve("2-folder"));

    TraceReadReport report = new TraceReader().read(List.of(directory.toString()), visitor);

    assertThat(times()).containsExactly(27.0, 28.0, 29.0);
    assertThat(report.inputs()).hasSize(3);
  }

  @Test
  void skipsFilesOfADirectoryThatHaveNoRecord() {
    TraceFiles.write(directory, "engine.log", "INFO: started", "INFO: ready");
    TraceFiles.write(directory, "empty.log", new byte[0]);
    TraceFiles.write(directory, "ucm.log", "[x][UC][I] Init [1,2]", TraceFiles.UCM);

    TraceReadReport report = new TraceReader().read(List.of(directory.toString()), visitor);

    assertThat(visitor.requests).hasSize(1);
    assertThat(report.problems())
        .extracting(TraceProblem::found)
        .contains("no trace record in 2 lines", "an empty input");
  }

  @Test
  void findsGzipByItsMagicBytesUnderAnyName() {
    String plainName =
        TraceFiles.write(directory, "trace.jsonl", TraceFiles.gzip(TraceFiles.MOONCAKE));
    String gzName = TraceFiles.write(directory, "plain.gz", SECOND);

    new TraceReader().read(List.of(plainName, gzName), visitor);

    assertThat(times()).containsExactly(27.0, 28.0);
  }

  @Test
  void readsAllMembersOfAGzipStreamThatNeverSaysHowMuchIsAvailable() throws IOException {
    ByteArrayOutputStream members = new ByteArrayOutputStream();
    members.write(TraceFiles.gzip(TraceFiles.text(TraceFiles.MOONCAKE)));
    members.write(TraceFiles.gzip(TraceFiles.text(SECOND)));
    members.write(TraceFiles.gzip(TraceFiles.text(THIRD)));
    InputStream pipe =
        new ByteArrayInputStream(members.toByteArray()) {
          @Override
          public int read(byte[] target, int offset, int length) {
            return super.read(target, offset, Math.min(length, 7));
          }

          @Override
          public synchronized int available() {
            return 0;
          }
        };

    new TraceReader(pipe).read(List.of("-"), visitor);

    assertThat(times()).containsExactly(27.0, 28.0, 29.0);
  }

  @Test
  void readsStandardInputAndLeavesItOpen() {
    boolean[] closed = new boolean[1];
    InputStream stdin =
        new ByteArrayInputStream(TraceFiles.MOONCAKE.getBytes(StandardCharsets.UTF_8)) {
          @Override
          public void close() {
            closed[0] = true;
          }
        };

    TraceReadReport report = new TraceReader(stdin).read(List.of("-"), visitor);

    assertThat(report.inputs()).containsExactly("standard input");
    assertThat(times()).containsExactly(27.0);
    assertThat(closed[0]).isFalse();
    assertThat(visitor.progress).containsExactly("0/-1", TraceFiles.MOONCAKE.length() + "/-1");
  }

  @Test
  void acceptsAByteOrderMarkWindowsLineEndsAndNoFinalNewline() {
    String text = "\ufeff" + TraceFiles.MOONCAKE + "\r\n  \t\r\n  " + SECOND;
    String file = TraceFiles.write(directory, "a", text.getBytes(StandardCharsets.UTF_8));

    TraceReadReport report = new TraceReader().read(List.of(file), visitor);

    assertThat(times()).containsExactly(27.0, 28.0);
    assertThat(report.problems()).isEmpty();
  }

  @Test
  void tellsHowFarItIsAboutEveryMebibyte() {
    String lines = (TraceFiles.MOONCAKE + "\n").repeat(40_000);
    String file = TraceFiles.write(directory, "a", lines.getBytes(StandardCharsets.UTF_8));

    new TraceReader().read(List.of(file), visitor);

    assertThat(visitor.requests).hasSize(40_000);
    assertThat(visitor.progress).hasSizeBetween(4, 7);
    assertThat(visitor.progress.getFirst()).isEqualTo("0/" + lines.length());
    assertThat(visitor.progress.getLast()).isEqualTo(lines.length() + "/" + lines.length());
  }

  @Test
  void countsTheBytesOfAllInputs() throws IOException {
    String first = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE);
    Path more = Files.createDirectory(directory.resolve("more"));
    TraceFiles.write(more, "b", TraceFiles.MOONCAKE);
    Files.createFile(more.resolve("c"));
    long size = Files.size(Path.of(first));

    new TraceReader().read(List.of(first, more.toString()), visitor);

    assertThat(visitor.progress)
        .containsExactly(
            "0/" + 2 * size,
            size + "/" + 2 * size,
            2 * size + "/" + 2 * size,
            2 * size + "/" + 2 * size);
  }

  @Test
  void passesOnWhatTheVisitorThrows() {
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE);
    IllegalStateException thrown = new IllegalStateException("enough");
    TraceVisitor throwing =
        _ -> {
          throw thrown;
        };

    assertThatThrownBy(() -> new TraceReader().read(List.of(file), throwing)).isSameAs(thrown);
  }

  @Test
  void showsAllToTwoVisitors() {
    String file = TraceFiles.write(directory, "a", TraceFiles.MOONCAKE + "\nno JSON\n");
    CollectingVisitor next = new CollectingVisitor();

    new TraceReader().read(List.of(file), visitor.andThen(next));

    assertThat(visitor.requests).hasSize(1);
    assertThat(visitor.progress).isNotEmpty();
    assertThat(next.requests).isEqualTo(visitor.requests);
    assertThat(next.progress).isEqualTo(visitor.progress);
  }

  private List<Double> times() {
    return visitor.requests.stream().map(TraceRequest::timestampMillis).toList();
  }
}

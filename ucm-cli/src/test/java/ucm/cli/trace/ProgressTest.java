package ucm.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.cli.output.Progress;
import ucm.cli.trace.TraceInputOptions.Watched;

class ProgressTest {

  @TempDir private Path folder;

  @Test
  void showsTheShareOfWhatHasNoKnownNumberOfSteps() {
    assertThat(Progress.text("requests", 6000, 0, 0.5))
        .isEqualTo("requests [" + "#".repeat(15) + " ".repeat(15) + "] 6000, 50%");
    assertThat(Progress.text("requests", 6000, 0, -1)).isEqualTo("requests 6000");
    assertThat(Progress.text("blocks", 3, 3, 1)).isEqualTo("blocks [" + "#".repeat(30) + "] 3/3");
  }

  @Test
  void countsTheBytesOfAllInputs() throws IOException {
    String first = Files.writeString(folder.resolve("first"), "x".repeat(30)).toString();
    Path more = Files.createDirectory(folder.resolve("more"));
    String second = Files.writeString(more.resolve("second"), "x".repeat(10)).toString();
    assertThat(TraceInputOptions.bytes(List.of(first, more.toString()))).isEqualTo(40);
    assertThat(TraceInputOptions.bytes(List.of(first, "-"))).isNegative();
    try (Progress progress = new Progress("requests", 0)) {
      Watched read = new Watched(_ -> {}, progress, 40);
      read.progress(first, 10, 30);
      assertThat(read.share()).isEqualTo(0.25);
      read.progress(first, 30, 30);
      assertThat(read.share()).isEqualTo(0.75);
      read.progress(second, 10, 10);
      assertThat(read.share()).isEqualTo(1);
      assertThat(new Watched(_ -> {}, progress, -1).share()).isNegative();
    }
  }
}

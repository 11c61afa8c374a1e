package ucm.cli.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.cli.trace.ReadProgress;

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
    ReadProgress read = new ReadProgress(List.of(first, more.toString()));

    assertThat(read.at(first, 10)).isEqualTo(0.25);
    assertThat(read.at(first, 30)).isEqualTo(0.75);
    assertThat(read.at(second, 10)).isEqualTo(1);
    assertThat(new ReadProgress(List.of(first, "-")).at(first, 10)).isNegative();
  }
}

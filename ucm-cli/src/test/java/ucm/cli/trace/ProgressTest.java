package ucm.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.cli.output.Progress;
import ucm.cli.trace.TraceInputOptions.Watched;

class ProgressTest {

  @Test
  void showsTheShareOfWhatHasNoKnownNumberOfSteps() {
    assertThat(Progress.text("requests", 6000, 0, 0.5))
        .isEqualTo("requests [" + "#".repeat(15) + " ".repeat(15) + "] 6000, 50%");
    assertThat(Progress.text("requests", 6000, 0, -1)).isEqualTo("requests 6000");
    assertThat(Progress.text("blocks", 3, 3, 1)).isEqualTo("blocks [" + "#".repeat(30) + "] 3/3");
  }

  @Test
  void showsTheShareOfTheBytesThatWereRead() {
    try (Progress progress = new Progress("requests", 0)) {
      Watched read = new Watched(_ -> {}, progress);
      assertThat(read.share()).isNegative();
      read.progress(0, 40);
      assertThat(read.share()).isZero();
      read.progress(10, 40);
      assertThat(read.share()).isEqualTo(0.25);
      read.progress(50, -1);
      assertThat(read.share()).isNegative();
    }
  }
}

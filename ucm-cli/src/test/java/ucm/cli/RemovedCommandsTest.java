package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class RemovedCommandsTest {

  @Test
  void aCommandOfAnEarlierVersionSaysInOneLineWhatReplacesIt() {
    StringWriter err = new StringWriter();
    int exitCode =
        Main.run(
            new PrintWriter(new StringWriter()),
            new PrintWriter(err, true),
            "bench",
            "serve",
            "--config",
            "ucm.yaml");
    assertThat(exitCode).isEqualTo(2);
    assertThat(err.toString().lines())
        .singleElement()
        .asString()
        .startsWith("ucm: there is no `ucm bench serve` any more: ")
        .contains("tools/engines/run");
  }

  @Test
  void otherCommandsAreNotTouched() {
    assertThat(RemovedCommands.replacement("bench", "store")).isEmpty();
    assertThat(RemovedCommands.replacement("bench")).isEmpty();
  }
}

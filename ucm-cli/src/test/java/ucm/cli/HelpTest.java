package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@code --help} prints. */
class HelpTest {

  @ParameterizedTest
  @ValueSource(
      strings = {
        "calc",
        "config",
        "config check",
        "config convert",
        "config docs",
        "config show",
        "demo",
        "doctor",
        "explain",
        "lite",
        "store",
        "stores",
        "trace",
        "trace analyze",
        "trace replay",
        "trace tiers"
      })
  void everyCommandExplainsItself(String command) {
    CommandRun.Ended help = CommandRun.run(Stream.of((command + " --help").split(" ")).toArray());
    assertThat(help.exitCode()).as(help.all()).isZero();
    assertThat(help.out()).startsWith("Usage: ucm " + command).contains("--help");
  }

  @Test
  void theCommandItselfNamesAllOthers() {
    CommandRun.Ended help = CommandRun.run("--help");
    assertThat(help.exitCode()).as(help.all()).isZero();
    assertThat(help.out()).startsWith("Usage: ucm").contains("config", "trace", "store", "doctor");
  }
}

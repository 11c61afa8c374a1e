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
        "completion",
        "config",
        "config check",
        "config convert",
        "config docs",
        "config show",
        "demo",
        "doctor",
        "explain",
        "help",
        "lite",
        "plugins",
        "plugins disable",
        "plugins enable",
        "plugins list",
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

  @ParameterizedTest
  @ValueSource(strings = {"", "trace", "trace replay", "config check"})
  void helpPrintsWhatTheOptionDoes(String command) {
    Object[] names = command.isEmpty() ? new Object[0] : command.split(" ");
    CommandRun.Ended help =
        CommandRun.run(Stream.concat(Stream.of("help"), Stream.of(names)).toArray());
    assertThat(help.exitCode()).as(help.all()).isZero();
    assertThat(help.out())
        .isEqualTo(
            CommandRun.run(Stream.concat(Stream.of(names), Stream.of("--help")).toArray()).out());
  }

  @Test
  void helpSaysWhichCommandsThereAre() {
    CommandRun.Ended help = CommandRun.run("help", "trace", "nope");
    assertThat(help.exitCode()).isEqualTo(2);
    assertThat(help.err()).contains("ucm trace has no command nope", "replay", "merge");
  }

  @Test
  void theCommandItselfNamesAllOthers() {
    CommandRun.Ended help = CommandRun.run("--help");
    assertThat(help.exitCode()).as(help.all()).isZero();
    assertThat(help.out()).startsWith("Usage: ucm").contains("config", "trace", "store", "doctor");
  }
}

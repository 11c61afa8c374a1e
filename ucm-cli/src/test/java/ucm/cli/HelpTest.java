package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What {@code --help} prints. */
class HelpTest {

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
}

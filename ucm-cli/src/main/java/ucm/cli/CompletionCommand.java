package ucm.cli;

import picocli.AutoComplete;
import picocli.CommandLine.Command;
import ucm.cli.output.CliCommand;

/** {@code ucm completion}: what a shell needs to complete commands and options. */
@Command(
    name = "completion",
    description = {
      "Prints a script that completes commands and options in a shell: source <(ucm completion"
          + " bash).",
      "The image has it, for bash and zsh, in share/completion."
    })
final class CompletionCommand extends CliCommand {

  @Command(name = "bash", description = "Prints the script for bash.")
  void bash() {
    out().print(AutoComplete.bash("ucm", Main.whole()));
    out().flush();
  }

  @Command(name = "zsh", description = "Prints the script for zsh, which runs it by bashcompinit.")
  void zsh() {
    bash();
  }
}

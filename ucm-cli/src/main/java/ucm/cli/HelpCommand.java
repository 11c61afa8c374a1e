package ucm.cli;

import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;
import ucm.cli.output.CliCommand;
import ucm.cli.output.UsageException;

/** {@code ucm help}: what {@code --help} of a command prints. */
@Command(name = "help", description = "Explains a command, as its --help does.")
final class HelpCommand extends CliCommand {

  @Parameters(
      arity = "0..*",
      paramLabel = "COMMAND",
      description = "the command, such as: trace replay")
  private List<String> names = List.of();

  @Override
  public void run() {
    CommandLine command = Main.whole();
    for (String name : names) {
      CommandLine below = command.getSubcommands().get(name);
      if (below == null) {
        throw new UsageException(
            "%s has no command %s; it has %s"
                .formatted(
                    command.getCommandSpec().qualifiedName(),
                    name,
                    String.join(", ", command.getSubcommands().keySet())));
      }
      command = below;
    }
    command.usage(out());
  }
}

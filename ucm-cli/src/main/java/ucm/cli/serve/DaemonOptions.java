package ucm.cli.serve;

import java.nio.file.Path;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Spec.Target;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.UsageException;
import ucm.server.Daemon;
import ucm.server.OperatorClient;
import ucm.server.RefusedException;

/** What commands have that ask a running daemon: 0 when all was done, 1 when not or none answers, 2 for wrong usage. */
final class DaemonOptions {

  @Spec(Target.MIXEE)
  private CommandSpec command;

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description = "the daemon's socket (default: as ucm serve)")
  private @Nullable Path socket;

  @Option(names = "--json", description = "print JSON instead of text")
  private boolean json;

  OperatorClient connect() {
    return OperatorClient.open(
        socket == null ? Daemon.defaultSocket() : socket, command.qualifiedName());
  }

  /** Asks for JSON; what is wrong with the question is wrong usage. */
  JsonNode ask(Function<OperatorClient, String> question) {
    try (OperatorClient client = connect()) {
      return JsonMapper.shared().readTree(question.apply(client));
    } catch (RefusedException e) {
      UsageException.when(e.isOfRequest(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  /** Prints an answer for people, or as JSON. */
  void print(Object answer, Runnable text) {
    if (json) {
      FormatOptions.json(command.commandLine().getOut(), answer);
    } else {
      text.run();
    }
  }
}

package ucm.cli.serve;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.server.Daemon;
import ucm.server.OperatorClient;
import ucm.server.RefusedException;

/** A command that asks a running daemon: 0 when all was done, 1 when not or none answers, 2 for wrong usage. */
abstract class DaemonCommand extends JsonCommand {

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description = "the daemon's socket (default: as ucm serve)")
  private @Nullable Path socket;

  /** Asks a question, and gets JSON. */
  interface Question {
    String ask(OperatorClient client);
  }

  /** Asks; what is wrong with the question is wrong usage. */
  final JsonNode ask(Question question) {
    try (OperatorClient client = connect()) {
      return JsonMapper.shared().readTree(question.ask(client));
    } catch (RefusedException e) {
      UsageException.when(e.isOfRequest(), String.valueOf(e.getMessage()));
      throw e;
    }
  }

  final OperatorClient connect() {
    return OperatorClient.open(
        socket == null ? Daemon.defaultSocket() : socket, spec.qualifiedName());
  }

  /** Shows how far the daemon is. */
  static Observer showing(Progress progress) {
    return progress::at;
  }

  /** 0 when the answer says that all was done. */
  static int exitCode(JsonNode answer) {
    return answer.path("complete").asBoolean() ? 0 : 1;
  }
}

package ucm.cli.serve;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.cli.output.JsonCommand;
import ucm.lite.trace.FileFault;
import ucm.server.Daemon;

/** {@code ucm serve status}: what a running daemon serves. */
@Command(
    name = "status",
    description = "Prints what the daemon serves: engines, ranks, hit rate, slots and holds.")
final class ServeStatusCommand extends JsonCommand {

  private static final Map<String, String> TITLES =
      Map.ofEntries(
          Map.entry("connected_ranks", "ranks connected"),
          Map.entry("tensor_parallel_size", "tensor-parallel size"));

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description = "the daemon's socket (default: as ucm serve)")
  private @Nullable Path socket;

  @Override
  public void run() {
    Path asked = socket == null ? Daemon.defaultSocket() : socket;
    try {
      JsonNode status = JsonMapper.shared().readTree(Daemon.status(asked));
      print(() -> status, () -> show(status));
    } catch (IOException e) {
      throw new StoreException(
          "no ucm serve answers at %s: %s; start it, or name its --socket"
              .formatted(asked, FileFault.of(e)),
          e);
    }
  }

  private void show(JsonNode status) {
    show("", status);
    for (JsonNode engine : status.path("engines")) {
      out().println();
      show("  ", engine);
    }
  }

  private void show(String indent, JsonNode node) {
    for (Map.Entry<String, JsonNode> field : List.copyOf(node.properties())) {
      if (field.getKey().equals("engines")) {
        continue;
      }
      String title = TITLES.getOrDefault(field.getKey(), field.getKey().replace('_', ' '));
      JsonNode value = field.getValue();
      out()
          .println(
              indent + title + ": " + (value.isString() ? value.asString() : value.toString()));
    }
  }
}

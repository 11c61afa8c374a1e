package ucm.server;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.api.StoreException;
import ucm.cli.output.Json;
import ucm.lite.trace.FileFault;
import ucm.server.client.Daemon;

/** {@code ucm serve status}: what a running daemon serves. */
@Command(
    name = "status",
    description = "Prints what the daemon serves: engines, ranks, hit rate, slots and holds.")
final class ServeStatusCommand implements Runnable {

  private static final Map<String, String> TITLES =
      Map.ofEntries(
          Map.entry("connected_ranks", "ranks connected"),
          Map.entry("tensor_parallel_size", "tensor-parallel size"));

  @Spec private CommandSpec spec;

  @Option(
      names = "--socket",
      paramLabel = "PATH",
      description = "the daemon's socket (default: as ucm serve)")
  private @Nullable Path socket;

  @Option(names = "--json", description = "print JSON instead of text")
  private boolean json;

  @Override
  public void run() {
    Path asked = socket == null ? Daemon.defaultSocket() : socket;
    JsonNode status;
    try {
      status = JsonMapper.shared().readTree(Daemon.status(asked));
    } catch (IOException e) {
      throw new StoreException(
          "no ucm serve answers at %s: %s; start it, or name its --socket"
              .formatted(asked, FileFault.of(e)),
          e);
    }
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      Json.print(out, status);
      return;
    }
    print(out, "", status);
    for (JsonNode engine : status.path("engines")) {
      out.println();
      print(out, "  ", engine);
    }
  }

  private static void print(PrintWriter out, String indent, JsonNode node) {
    for (Map.Entry<String, JsonNode> field : List.copyOf(node.properties())) {
      if (field.getKey().equals("engines")) {
        continue;
      }
      String title = TITLES.getOrDefault(field.getKey(), field.getKey().replace('_', ' '));
      JsonNode value = field.getValue();
      out.println(indent + title + ": " + (value.isString() ? value.asString() : value.toString()));
    }
  }
}

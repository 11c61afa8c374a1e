package ucm.cli.serve;

import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import tools.jackson.databind.JsonNode;
import ucm.server.OperatorClient;

/** {@code ucm serve status}: what a running daemon serves. */
@Command(
    name = "status",
    description = "Prints what the daemon serves: engines, ranks, hit rate, slots and holds.")
final class ServeStatusCommand extends DaemonCommand {

  private static final Map<String, String> TITLES =
      Map.ofEntries(
          Map.entry("connected_ranks", "ranks connected"),
          Map.entry("tensor_parallel_size", "tensor-parallel size"));

  @Override
  public void run() {
    JsonNode status = ask(OperatorClient::status);
    print(() -> status, () -> show(status));
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

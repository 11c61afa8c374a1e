package ucm.cli.serve;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Spec.Target;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.output.CliCommand;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Progress;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;
import ucm.server.Daemon;
import ucm.server.OperatorClient;
import ucm.server.RefusedException;

/** What operators ask of a running daemon; exit codes are 0 when all was done, 1 when not or none answers, 2 for wrong usage. */
abstract class ServeOperations extends CliCommand {

  private static final Map<String, String> TITLES =
      Map.of("connected_ranks", "ranks connected", "tensor_parallel_size", "tensor-parallel size");

  /** Which daemon is asked, and in which form its answer is printed. */
  static final class AskedDaemon {

    @Spec(Target.MIXEE)
    private CommandSpec command;

    @Option(
        names = "--socket",
        paramLabel = "PATH",
        description = "the daemon's socket (default: as ucm serve)")
    private @Nullable Path socket;

    @Option(names = "--json", description = "print JSON instead of text")
    private boolean json;

    /** Asks a question that is answered with JSON; what is wrong with the question is wrong usage. */
    private JsonNode ask(Function<OperatorClient, String> question) {
      try (OperatorClient client = connect()) {
        return JsonMapper.shared().readTree(question.apply(client));
      } catch (RefusedException e) {
        UsageException.when(e.isOfRequest(), String.valueOf(e.getMessage()));
        throw e;
      }
    }

    private OperatorClient connect() {
      return OperatorClient.open(
          socket == null ? Daemon.defaultSocket() : socket, command.qualifiedName());
    }

    private void print(Object answer, Runnable text) {
      if (json) {
        FormatOptions.json(command.commandLine().getOut(), answer);
      } else {
        text.run();
      }
    }
  }

  @Command(
      name = "status",
      description = "Prints what the daemon serves: engines, ranks, hit rate, slots and holds.")
  void status(@Mixin AskedDaemon daemon) {
    JsonNode status = daemon.ask(OperatorClient::status);
    daemon.print(
        status,
        () -> {
          show("", status);
          for (JsonNode engine : status.path("engines")) {
            say("");
            show("  ", engine);
          }
        });
  }

  private void show(String indent, JsonNode node) {
    for (Map.Entry<String, JsonNode> field : List.copyOf(node.properties())) {
      if (!field.getKey().equals("engines")) {
        String title = TITLES.getOrDefault(field.getKey(), field.getKey().replace('_', ' '));
        JsonNode value = field.getValue();
        say(indent + title + ": " + (value.isString() ? value.asString() : value.toString()));
      }
    }
  }

  @Command(
      name = "reload",
      description = {
        "Has the engines of a configuration file take new values from it, those of keys that may"
            + " change while they run. What may not is named, and stays as it is.",
        "Exit code 1 when not all is in force, 2 when the file is wrong, so that nothing changed."
      })
  int reload(
      @Parameters(
              paramLabel = "FILE",
              description = "the YAML file, at the path by which the engines were given it")
          Path file,
      @Mixin AskedDaemon daemon) {
    String name = file.toAbsolutePath().normalize().toString();
    String yaml;
    try {
      yaml = Files.readString(file);
    } catch (IOException e) {
      throw new UsageException("cannot read " + file + ": " + FileFault.of(e));
    }
    JsonNode answer = daemon.ask(client -> client.reload(name, yaml));
    daemon.print(answer, () -> showReload(answer));
    return exitCode(answer);
  }

  private void showReload(JsonNode answer) {
    if (answer.path("engines").isEmpty()) {
      String others =
          String.join(
              ", ",
              answer.path("other_configurations").valueStream().map(JsonNode::asString).toList());
      say(
          "no engine here has the configuration %s; %s"
              .formatted(
                  answer.path("configuration").asString(),
                  others.isEmpty() ? "no engine is connected" : "those connected have " + others));
    }
    for (JsonNode engine : answer.path("engines")) {
      String prefix = engine.path("engine").asString() + ": ";
      if (engine.path("taken").isEmpty() && engine.path("not_taken").isEmpty()) {
        say(prefix + "nothing has changed");
      }
      engine
          .path("taken")
          .properties()
          .forEach(key -> say(prefix + key.getKey() + " is " + change(key.getValue())));
      for (Map.Entry<String, JsonNode> key : engine.path("not_taken").properties()) {
        String why = key.getValue().path("reason").asString();
        say(prefix + "%s is not %s: it %s".formatted(key.getKey(), change(key.getValue()), why));
      }
    }
  }

  private static String change(JsonNode values) {
    return "%s, was %s".formatted(text(values.path("to")), text(values.path("from")));
  }

  private static String text(JsonNode value) {
    return value.isNull() ? "unset" : value.isString() ? value.asString() : value.toString();
  }

  @Command(
      name = "drain",
      description = {
        "Has the daemon store no more blocks, and waits until those that engines have brought are"
            + " stored. Engines go on: they load what there is, and what they save is given up.",
        "Exit code 1 when some blocks are not stored. With --undo blocks are stored again."
      })
  int drain(
      @Option(
              names = "--timeout",
              paramLabel = "SECONDS",
              defaultValue = "120",
              description = "how long to wait (default: ${DEFAULT-VALUE})")
          int seconds,
      @Option(names = "--undo", description = "have it store blocks again") boolean undo,
      @Mixin AskedDaemon daemon) {
    UsageException.when(seconds < 0, "--timeout is 0 or more seconds; found " + seconds);
    JsonNode answer;
    try (Progress progress = new Progress("saves", 0)) {
      answer = daemon.ask(client -> client.drain(!undo, seconds, progress::at));
    }
    daemon.print(
        answer,
        () ->
            say(
                undo
                    ? "blocks are stored again"
                    : exitCode(answer) == 0
                        ? "drained: all that engines brought is stored, and nothing more will be"
                        : "drained, but %s saves and %s blocks are still under way after %s s, and %s blocks could not be stored: see the log of the daemon, or ask again"
                            .formatted(
                                answer.path("saves_left"),
                                answer.path("pending_blocks"),
                                seconds,
                                answer.path("failed_blocks"))));
    return undo ? 0 : exitCode(answer);
  }

  @Command(
      name = "clear",
      description = {
        "Removes all blocks of the pipelines that the daemon has open, from memory and from storage"
            + " directories, those that other nodes stored there included. Engines go on, and find"
            + " nothing.",
        "Exit code 1 when some blocks are left. Ctrl-C stops it; what is removed then is gone."
      })
  int clear(
      @Option(names = "--yes", description = "do not ask") boolean yes, @Mixin AskedDaemon daemon) {
    confirm(yes, "remove all blocks of the engines' pipelines? [y/N] ");
    JsonNode answer;
    try (Progress progress = new Progress("removed blocks", 0)) {
      answer = daemon.ask(client -> client.clear(progress::at));
    }
    daemon.print(answer, () -> showClear(answer));
    return exitCode(answer);
  }

  private void showClear(JsonNode answer) {
    say(
        "removed %s blocks of %s pipelines"
            .formatted(answer.path("removed_blocks"), answer.path("pipelines").size()));
    if (answer.path("left_blocks").asLong() > 0) {
      say(answer.path("left_blocks") + " could not be removed: see the log of the daemon");
    }
    for (JsonNode stage : answer.path("kept_stages")) {
      say(
          stage.asString()
              + " cannot be emptied: its store neither lists its blocks nor is Clearable");
    }
  }

  @Command(name = "log-level", description = "Says what the daemon logs, or sets it until it ends.")
  void logLevel(
      @Parameters(
              paramLabel = "LEVEL",
              arity = "0..1",
              defaultValue = "",
              description = "debug, info, warning or error")
          String level,
      @Mixin AskedDaemon daemon) {
    JsonNode answer = daemon.ask(client -> client.logLevel(level));
    String now = answer.path("log_level").asString();
    String before = level.isEmpty() ? "" : ", was " + answer.path("before").asString();
    daemon.print(answer, () -> say(now + before));
  }

  @Command(
      name = "stop",
      description = {
        "Ends the daemon, and waits until what engines have saved is stored. An engine whose"
            + " connector may start a daemon starts another one."
      })
  void stop(@Mixin AskedDaemon daemon) {
    try (OperatorClient client = daemon.connect()) {
      client.stop();
    }
    daemon.print(Map.of("stopped", true), () -> say("the daemon has ended"));
  }

  /** 0 when the answer says that all was done. */
  private static int exitCode(JsonNode answer) {
    return answer.path("complete").asBoolean() ? 0 : 1;
  }
}

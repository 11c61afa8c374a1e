package ucm.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What holds for every command, those of other modules among them. */
final class AllCommandsTest {

  /** Commands that print no findings: a trace, a file, a page, a script, or a log. */
  private static final String[] WITHOUT_JSON = {
    "ucm completion bash",
    "ucm completion zsh",
    "ucm config convert",
    "ucm config docs",
    "ucm help",
    "ucm serve",
    "ucm trace anonymize",
    "ucm trace generate",
    "ucm trace merge"
  };

  private static final Predicate<String> SNAKE = Pattern.compile("[a-z0-9_.]+").asMatchPredicate();

  @TempDir private Path folder;

  private static Map<String, CommandLine> commands() {
    Map<String, CommandLine> commands = new TreeMap<>();
    add(Main.whole(), commands);
    return commands;
  }

  private static void add(CommandLine command, Map<String, CommandLine> commands) {
    boolean onlyGroups =
        !command.getSubcommands().isEmpty() && !command.getCommandName().equals("serve");
    if (!onlyGroups) {
      commands.put(command.getCommandSpec().qualifiedName(), command);
    }
    command.getSubcommands().values().forEach(below -> add(below, commands));
  }

  @Test
  void everyOneThatPrintsATableCanPrintJson() {
    Map<String, CommandLine> commands = commands();
    assertThat(commands).containsKeys("ucm bench store", "ucm serve status", "ucm trace stat");
    commands.values().removeIf(command -> command.getCommandSpec().findOption("--json") != null);
    assertThat(commands).containsOnlyKeys(WITHOUT_JSON);
  }

  private static String run(String... args) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    int exitCode = Main.run(new PrintWriter(out, true), new PrintWriter(err, true), args);
    assertThat(exitCode).as("%s: %s", String.join(" ", args), err).isZero();
    return out.toString();
  }

  @Test
  void namesInJsonAreInSnakeCase() throws IOException {
    Path trace = Path.of("src/main/image/share/examples/requests.jsonl").toAbsolutePath();
    Path blocks = Files.createDirectory(folder.resolve("blocks"));
    Path plugins = Files.createDirectories(folder.resolve("plugins/own")).getParent();
    Path config =
        Files.writeString(
            folder.resolve("ucm.yaml"),
            """
            ucm_connector_name: "UcmPipelineStore"
            ucm_connector_config:
              store_pipeline: "Cache|Posix"
              storage_backends: "%s"
              cache_buffer_capacity_gb: 0.1
            """
                .formatted(blocks));
    String with = " --config " + config;
    for (String command :
        List.of(
            "trace replay " + trace + with,
            "explain " + trace + " --request 12" + with,
            "lite run " + trace + with,
            "trace stat " + trace,
            "trace analyze " + trace,
            "trace tiers " + trace + " --model qwq-32b --gpu h20 --hbm 40GB --dram 512GB",
            "calc --model qwq-32b",
            "stores",
            "plugins list --plugins " + plugins,
            "config check " + config,
            "config show " + config,
            "doctor" + with,
            "demo --prompts 1 --input-len 256 --buffer-gb 0.1",
            "store stat " + blocks,
            "store ls " + blocks,
            "store verify " + blocks,
            "store gc --to-percent 50 --dry-run " + blocks)) {
      JsonNode json = JsonMapper.shared().readTree(run((command + " --json").split(" ")));
      assertThat(names(json, new TreeSet<>())).as(command).isNotEmpty().allMatch(SNAKE);
    }
  }

  private static Set<String> names(JsonNode json, Set<String> names) {
    names.addAll(json.propertyNames());
    json.forEach(below -> names(below, names));
    return names;
  }

  @Test
  void theScriptOfAShellKnowsThemAll() {
    String script = run("completion", "bash");
    assertThat(script).isEqualTo(run("completion", "zsh"));
    for (CommandLine command : commands().values()) {
      assertThat(script)
          .contains(
              command
                  .getCommandSpec()
                  .qualifiedName("_")
                  .replace("-", "")
                  .replaceFirst("^ucm", "_picocli_ucm"));
    }
  }
}

package ucm.cli.trace;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.CliCommand;
import ucm.cli.output.UsageException;
import ucm.lite.edit.GeneratorOptions;
import ucm.lite.edit.TraceGenerator;

/** {@code ucm trace generate}: a made-up trace. */
@Command(
    name = "generate",
    description = {
      "Makes up a trace of chats, agents and questions about documents that share system prompts.",
      "The same options and seed give the same trace. It is for trying things out, not a model of"
          + " real traffic."
    })
public final class GenerateCommand extends CliCommand {

  private static final List<String> KINDS = List.of("chat", "agent", "document");

  @Mixin private TraceOutputOptions output = new TraceOutputOptions();

  @Option(
      names = "--requests",
      paramLabel = "N",
      description = "requests (default: ${DEFAULT-VALUE})")
  private int requests = 10000;

  @Option(names = "--seed", paramLabel = "N", description = "seed (default: ${DEFAULT-VALUE})")
  private long seed = 1;

  @Option(
      names = "--rate",
      paramLabel = "N",
      defaultValue = "3",
      description = "mean requests a second (default: ${DEFAULT-VALUE})")
  private double rate;

  @Option(
      names = "--mix",
      split = ",",
      paramLabel = "KIND=SHARE",
      description = "share of the sessions of each kind (default: chat=0.7,agent=0.1,document=0.2)")
  private Map<String, Double> mix =
      new HashMap<>(Map.of("chat", 0.7, "agent", 0.1, "document", 0.2));

  @Option(
      names = "--system-prompts",
      paramLabel = "N",
      description = "system prompts that the sessions share (default: ${DEFAULT-VALUE})")
  private int systemPrompts = 8;

  @Option(
      names = "--block-tokens",
      paramLabel = "N",
      description = "tokens a block (default: what is usual for the format)")
  private int blockTokens;

  @Override
  public void run() {
    for (String kind : mix.keySet()) {
      UsageException.when(
          !KINDS.contains(kind.toLowerCase(Locale.ROOT)),
          "--mix knows chat, agent and document; found " + kind);
    }
    TraceGenerator generator = new TraceGenerator(options());
    output.write(generator::generate);
  }

  private GeneratorOptions options() {
    int tokens = blockTokens == 0 ? output.format().defaultBlockTokens() : blockTokens;
    return UsageException.accepted(
        () ->
            new GeneratorOptions(
                requests,
                seed,
                rate,
                tokens,
                share("chat"),
                share("agent"),
                share("document"),
                systemPrompts));
  }

  private double share(String kind) {
    return mix.entrySet().stream()
        .filter(given -> given.getKey().equalsIgnoreCase(kind))
        .mapToDouble(Map.Entry::getValue)
        .sum();
  }
}

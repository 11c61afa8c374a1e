package ucm.cli.model;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.ByteSize;
import ucm.cli.output.CliCommand;
import ucm.cli.output.Csv;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
import ucm.cli.output.Json;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.lite.tier.KvModel;
import ucm.lite.tier.KvModels;

/** {@code ucm calc}: how large the KV cache of a model is. */
@Command(
    name = "calc",
    description = {
      "Prints how many bytes a model leaves in the KV cache: a token, a block, a prompt, and what"
          + " fits into a capacity.",
      "Without --model or --model-config: of each model that is built in."
    })
public final class CalcCommand extends CliCommand {

  @Mixin private ModelOptions models = new ModelOptions();

  @Option(
      names = "--block-tokens",
      paramLabel = "N",
      description = "tokens a block (default: ${DEFAULT-VALUE})")
  private int blockTokens = 128;

  @Option(
      names = "--tokens",
      paramLabel = "N",
      description = "tokens of a prompt (default: ${DEFAULT-VALUE})")
  private long promptTokens = 32000;

  @Option(
      names = "--capacity",
      paramLabel = "SIZE",
      defaultValue = "1TB",
      converter = ByteSize.Converter.class,
      description = "a capacity, such as 512GB (default: ${DEFAULT-VALUE})")
  private ByteSize capacity = new ByteSize(0);

  @Mixin private FormatOptions format = new FormatOptions();

  @Override
  public void run() {
    UsageException.when(
        blockTokens < 1 || promptTokens < 1, "--block-tokens and --tokens are 1 or more");
    List<KvModel> shown = new ArrayList<>();
    models.model().ifPresent(shown::add);
    if (shown.isEmpty()) {
      KvModels.names().forEach(name -> KvModels.named(name, models.kvType()).ifPresent(shown::add));
    }
    PrintWriter out = out();
    if (format.json()) {
      Json.print(out, shown.stream().map(this::data).toList());
    } else if (format.csv()) {
      List<Map<String, Object>> rows = shown.stream().map(this::data).toList();
      rows.forEach(row -> row.remove("notes"));
      Csv.print(out, rows);
    } else {
      print(out, shown);
    }
  }

  private void print(PrintWriter out, List<KvModel> shown) {
    Table table =
        new Table(
            "MODEL",
            "LAYERS",
            "BYTES A TOKEN",
            "OF A RANK",
            "MB A BLOCK",
            "GB A PROMPT",
            "MTOKENS IN " + Figures.gigabytes(capacity.bytes()) + " GB");
    for (KvModel model : shown) {
      long token = model.storedBytesPerToken(models.tensorParallel());
      table.row(
          model.name(),
          Figures.grouped(model.layers()),
          Figures.grouped(token),
          Figures.grouped(model.bytesPerTokenAndRank(models.tensorParallel())),
          Figures.fixed(token * blockTokens / 1e6, 3),
          Figures.gigabytes((double) token * promptTokens),
          Figures.fixed(capacity.bytes() / token / 1e6, 2));
    }
    table.print(out);
    out.println();
    out.println(
        String.format(
            "Blocks of %s tokens, prompts of %s tokens, %s tensor-parallel rank(s). A latent (MLA)"
                + " is on every rank and stored once.",
            blockTokens, Figures.grouped(promptTokens), models.tensorParallel()));
    for (KvModel model : shown) {
      model.notes().forEach(note -> out.println(model.name() + ": " + note + "."));
    }
  }

  private Map<String, Object> data(KvModel model) {
    long token = model.storedBytesPerToken(models.tensorParallel());
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("model", model.name());
    data.put("layers", model.layers());
    data.put("latent", model.latent());
    data.put("bytes_per_token", token);
    data.put("bytes_per_token_and_rank", model.bytesPerTokenAndRank(models.tensorParallel()));
    data.put("bytes_per_block", token * blockTokens);
    data.put("bytes_per_prompt", token * promptTokens);
    data.put("tokens_in_capacity", (long) (capacity.bytes() / token));
    data.put("notes", model.notes());
    return data;
  }
}

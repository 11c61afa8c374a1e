package ucm.cli.model;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.cli.output.ByteSize;
import ucm.cli.output.CliCommand;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.FormatOptions;
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
public final class CalcCommand extends CliCommand implements FormatOptions.Report {

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
      description = "a capacity, such as 512GB (default: ${DEFAULT-VALUE})")
  private ByteSize capacity = new ByteSize(0);

  @Mixin private FormatOptions format = new FormatOptions();

  private final List<KvModel> shown = new ArrayList<>();

  @Override
  public void run() {
    UsageException.when(
        blockTokens < 1 || promptTokens < 1, "--block-tokens and --tokens are 1 or more");
    models.model().ifPresent(shown::add);
    if (shown.isEmpty()) {
      KvModels.names().forEach(name -> KvModels.named(name, models.kvType()).ifPresent(shown::add));
    }
    format.print(out(), this);
  }

  private Columns<KvModel> columns() {
    int ranks = models.tensorParallel();
    return new Columns<KvModel>()
        .both("MODEL", "model", KvModel::name)
        .both("LAYERS", "layers", KvModel::layers, layers -> Figures.grouped(layers))
        .data("latent", KvModel::latent)
        .both("BYTES A TOKEN", "bytes_per_token", this::token, Figures::grouped)
        .both(
            "OF A RANK",
            "bytes_per_token_and_rank",
            model -> model.bytesPerTokenAndRank(ranks),
            Figures::grouped)
        .both(
            "MB A BLOCK",
            "bytes_per_block",
            model -> token(model) * blockTokens,
            bytes -> Figures.fixed(bytes / 1e6, 3))
        .both(
            "GB A PROMPT",
            "bytes_per_prompt",
            model -> token(model) * promptTokens,
            bytes -> Figures.gigabytes(bytes))
        .data("tokens_in_capacity", model -> (long) (capacity.bytes() / token(model)))
        .text(
            "MTOKENS IN " + Figures.gigabytes(capacity.bytes()) + " GB",
            model -> Figures.fixed(capacity.bytes() / token(model) / 1e6, 2));
  }

  private long token(KvModel model) {
    return model.storedBytesPerToken(models.tensorParallel());
  }

  @Override
  public List<Fields> data() {
    return shown.stream().map(model -> columns().data(model).with("notes", model.notes())).toList();
  }

  @Override
  public List<Fields> rows() {
    return columns().data(shown);
  }

  @Override
  public void print(PrintWriter out) {
    columns().table(shown).printSection(out);
    out.println(
        String.format(
            "Blocks of %s tokens, prompts of %s tokens, %s tensor-parallel rank(s). A latent (MLA)"
                + " is on every rank and stored once.",
            blockTokens, Figures.grouped(promptTokens), models.tensorParallel()));
    for (KvModel model : shown) {
      model.notes().forEach(note -> out.println(model.name() + ": " + note + "."));
    }
  }
}

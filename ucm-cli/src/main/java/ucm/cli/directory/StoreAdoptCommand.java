package ucm.cli.directory;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import ucm.api.CommonKeys;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;

/** {@code ucm store adopt}: gives blocks of the original checksums. */
@Command(
    name = "adopt",
    description = {
      "Gives blocks without checksums, as the original UCM writes them, checksums of the bytes that"
          + " they have now, so that engines find them.",
      "",
      "What is torn or of another block today is believed from then on: adopt only directories that"
          + " you trust, and end engines of the original UCM first. Blocks with checksums, and"
          + " files of another size than a block, stay as they are. The layout is that of the"
          + " blocks of the same size that have checksums; where there is none, name it. Exit code"
          + " 1 when a file is damaged, or cannot be read or written."
    })
final class StoreAdoptCommand extends ReadCommand {

  @Option(
      names = "--block-size",
      paramLabel = "BYTES",
      description = "bytes of a block, as the engine has them (block_size)")
  private @Nullable Long blockSize;

  @Option(
      names = "--shard-size",
      paramLabel = "BYTES",
      description = "bytes of a shard (shard_size; default: those of the block)")
  private @Nullable Long shardSize;

  @Option(
      names = "--tensor-size",
      paramLabel = "BYTES",
      split = ",",
      description =
          "bytes of a tensor (tensor_size; default: those of the shard), or of each tensor of a"
              + " shard, separated by commas")
  private @Nullable List<Long> tensorSizes;

  @Option(names = "--dry-run", description = "say what would be done, and change nothing")
  private boolean dryRun;

  @Override
  public Integer call() {
    StoreDirectories directories = open(layout());
    AdoptPlan plan = new AdoptPlan(threads, maxBytesPerSecond(), dryRun);
    AdoptResult result = onBytes(work -> directories.adopt(plan, work, damages::add));
    printWhole(() -> data(result), () -> show(result));
    return result.failed() > 0 || !result.isComplete() ? 1 : 0;
  }

  private Map<String, Object> layout() {
    UsageException.when(
        blockSize == null && (shardSize != null || tensorSizes != null),
        "--shard-size and --tensor-size need --block-size");
    Map<String, Object> layout = new LinkedHashMap<>();
    if (blockSize != null) {
      layout.put(CommonKeys.BLOCK_SIZE.name(), blockSize);
    }
    if (shardSize != null) {
      layout.put(CommonKeys.SHARD_SIZE.name(), shardSize);
    }
    if (tensorSizes != null && tensorSizes.size() == 1) {
      layout.put(CommonKeys.TENSOR_SIZE.name(), tensorSizes.getFirst());
    } else if (tensorSizes != null) {
      layout.put(CommonKeys.TENSOR_SIZE_LIST.name(), tensorSizes);
    }
    return layout;
  }

  private Fields data(AdoptResult result) {
    return new Fields()
        .with("dry_run", dryRun)
        .with("adopted_blocks", result.adopted())
        .with("adopted_bytes", result.bytes())
        .with("verifiable_blocks", result.verifiable())
        .with("skipped_files", result.skipped())
        .with("failed_files", result.failed())
        .with("failures", damageColumns().data(damages));
  }

  private void show(AdoptResult result) {
    for (Damage failure : damages) {
      say("not adopted: " + failure.path() + ": " + failure.reason());
    }
    say(
        String.format(
            "%s %s blocks checksums (%s); %s had them, %s files without have another size than"
                + " a block, %s failed",
            dryRun ? "would give" : "gave",
            result.adopted(),
            Figures.bytes(result.bytes()),
            result.verifiable(),
            result.skipped(),
            result.failed()));
  }
}

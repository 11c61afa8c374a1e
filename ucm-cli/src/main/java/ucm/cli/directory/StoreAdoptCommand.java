package ucm.cli.directory;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.CommonKeys;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.config.ConfigKey;
import ucm.cli.output.ByteText;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;

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
final class StoreAdoptCommand extends JsonCommand {

  @Mixin private DirectoriesInput input = new DirectoriesInput();
  @Mixin private StoreReadOptions reading = new StoreReadOptions();

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
    reading.require();
    StoreDirectories directories = input.open(layout());
    AdoptPlan plan = new AdoptPlan(reading.threads(), reading.maxBytesPerSecond(), dryRun);
    List<Damage> failures = new ArrayList<>();
    AdoptResult result;
    try (Cleanup cleanup = new Cleanup()) {
      DirectoryProgress work = cleanup.add(new DirectoryProgress("MiB", (long) ByteText.MIB));
      result = directories.adopt(plan, work, failures::add);
    }
    if (!Cleanup.interrupted()) {
      print(result, failures);
    }
    return result.failed() > 0 || !result.isComplete() ? 1 : 0;
  }

  private Map<ConfigKey<?>, Object> layout() {
    UsageException.when(
        blockSize == null && (shardSize != null || tensorSizes != null),
        "--shard-size and --tensor-size need --block-size");
    Map<ConfigKey<?>, Object> layout = new LinkedHashMap<>();
    if (blockSize != null) {
      layout.put(CommonKeys.BLOCK_SIZE, blockSize);
    }
    if (shardSize != null) {
      layout.put(CommonKeys.SHARD_SIZE, shardSize);
    }
    if (tensorSizes != null && tensorSizes.size() == 1) {
      layout.put(CommonKeys.TENSOR_SIZE, tensorSizes.getFirst());
    } else if (tensorSizes != null) {
      layout.put(CommonKeys.TENSOR_SIZE_LIST, tensorSizes);
    }
    return layout;
  }

  private void print(AdoptResult result, List<Damage> failures) {
    PrintWriter out = out();
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("dry_run", dryRun);
      data.put("adopted_blocks", result.adopted());
      data.put("adopted_bytes", result.bytes());
      data.put("verifiable_blocks", result.verifiable());
      data.put("skipped_files", result.skipped());
      data.put("failed_files", result.failed());
      data.put("failures", failures.stream().map(StoreAdoptCommand::data).toList());
      Json.print(out, data);
      return;
    }
    for (Damage failure : failures) {
      out.println("not adopted: " + failure.path() + ": " + failure.reason());
    }
    out.println(
        (dryRun ? "would give " : "gave ")
            + result.adopted()
            + " blocks checksums ("
            + ByteText.of(result.bytes())
            + "); "
            + result.verifiable()
            + " had them, "
            + result.skipped()
            + " files without have another size than a block, "
            + result.failed()
            + " failed");
  }

  private static Map<String, Object> data(Damage failure) {
    return Map.of(
        "path", failure.path(), "reason", failure.reason(), "damaged", failure.isDamaged());
  }
}

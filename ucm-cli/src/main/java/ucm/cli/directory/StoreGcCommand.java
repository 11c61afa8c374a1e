package ucm.cli.directory;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.CollectResult;
import ucm.cli.output.ByteText;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;

/** {@code ucm store gc}: makes room in directories. */
@Command(
    name = "gc",
    description = {
      "Removes what dead writers left, then the blocks that were used longest ago, as engines do.",
      "",
      "Engines may run: a block removed is a miss for them. While one of them collects by itself,"
          + " it holds the lease, and this command ends with a message that says who."
    })
final class StoreGcCommand extends JsonCommand {

  @Mixin private DirectoriesInput input = new DirectoriesInput();

  @Option(
      names = "--to-gb",
      paramLabel = "GB",
      description = "until all directories together take no more than this (2^30 bytes)")
  private @Nullable Double toGb;

  @Option(
      names = "--to-percent",
      paramLabel = "P",
      description = "until they take no more than this share of what they take now")
  private @Nullable Double toPercent;

  @Option(names = "--dry-run", description = "say what would be removed, and remove nothing")
  private boolean dryRun;

  @Override
  public Integer call() {
    UsageException.when(
        toGb != null && toPercent != null, "--to-gb or --to-percent, one of the two");
    // Written so that what is no number is refused, too.
    UsageException.within("--to-gb", toGb, 0, 1_000_000_000);
    UsageException.within("--to-percent", toPercent, 0, 100);
    StoreDirectories directories = input.open();
    if (toGb == null && toPercent == null && !directories.hasOwnLimit()) {
      throw new UsageException(
          "say how much may stay, with --to-gb or --to-percent, or name with --config a file that"
              + " sets a capacity");
    }
    CollectPlan plan =
        new CollectPlan(
            toGb == null ? null : (Long) (long) (toGb * ByteText.GIB),
            toPercent == null ? null : (Double) (toPercent / 100),
            dryRun);
    CollectResult result;
    try (Cleanup cleanup = new Cleanup()) {
      DirectoryProgress work = cleanup.add(new DirectoryProgress("MiB", (long) ByteText.MIB));
      result = directories.collect(plan, work);
    }
    if (!Cleanup.interrupted()) {
      print(result);
    }
    long left = result.usedBytesBefore() - result.removedBytes();
    return result.isComplete() && left <= result.targetBytes() ? 0 : 1;
  }

  private void print(CollectResult result) {
    PrintWriter out = out();
    long left = result.usedBytesBefore() - result.removedBytes();
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("dry_run", dryRun);
      data.put("used_bytes_before", result.usedBytesBefore());
      data.put("target_bytes", result.targetBytes());
      data.put("used_bytes_after", left);
      data.put("removed_blocks", result.removedBlocks());
      data.put("removed_bytes", result.removedBytes());
      data.put("removed_temp_files", result.removedTempFiles());
      Json.print(out, data);
      return;
    }
    out.println(
        (dryRun ? "would remove " : "removed ")
            + result.removedBlocks()
            + " blocks of "
            + ByteText.of(result.removedBytes())
            + " and "
            + result.removedTempFiles()
            + " temporary files of dead writers; "
            + ByteText.of(result.usedBytesBefore())
            + " were used, "
            + ByteText.of(left)
            + (dryRun ? " would be left" : " are left"));
    if (left > result.targetBytes()) {
      out.println(
          "that is more than the "
              + ByteText.of(result.targetBytes())
              + " asked for: what is left is no block, cannot be removed, or came meanwhile");
    }
  }
}

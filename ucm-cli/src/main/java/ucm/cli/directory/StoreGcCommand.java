package ucm.cli.directory;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.CollectResult;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;

/** {@code ucm store gc}: makes room in directories. */
@Command(
    name = "gc",
    description = {
      "Removes what dead writers left, then the blocks that were used longest ago, as engines do.",
      "",
      "Engines may run: a block removed is a miss for them. While one of them collects by itself,"
          + " it holds the lease, and this command ends with a message that says who."
    })
final class StoreGcCommand extends DirectoryCommand {

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
    UsageException.within("--to-gb", toGb, 0, 1_000_000_000);
    UsageException.within("--to-percent", toPercent, 0, 100);
    StoreDirectories directories = open(Map.of());
    UsageException.when(
        toGb == null && toPercent == null && !directories.hasOwnLimit(),
        "say how much may stay, with --to-gb or --to-percent, or name with --config a file that"
            + " sets a capacity");
    CollectPlan plan =
        new CollectPlan(
            toGb == null ? null : (Long) (long) (toGb * Figures.GIB),
            toPercent == null ? null : (Double) (toPercent / 100),
            dryRun);
    CollectResult result = onBytes(work -> directories.collect(plan, work));
    long left = result.usedBytesBefore() - result.removedBytes();
    printWhole(() -> data(result, left), () -> show(result, left));
    return result.isComplete() && left <= result.targetBytes() ? 0 : 1;
  }

  private Fields data(CollectResult result, long left) {
    return new Fields()
        .with("dry_run", dryRun)
        .with("used_bytes_before", result.usedBytesBefore())
        .with("target_bytes", result.targetBytes())
        .with("used_bytes_after", left)
        .with("removed_blocks", result.removedBlocks())
        .with("removed_bytes", result.removedBytes())
        .with("removed_temp_files", result.removedTempFiles());
  }

  private void show(CollectResult result, long left) {
    say(
        "%s %s blocks of %s and %s temporary files of dead writers; %s were used, %s %s"
            .formatted(
                dryRun ? "would remove" : "removed",
                result.removedBlocks(),
                Figures.bytes(result.removedBytes()),
                result.removedTempFiles(),
                Figures.bytes(result.usedBytesBefore()),
                Figures.bytes(left),
                dryRun ? "would be left" : "are left"));
    if (left > result.targetBytes()) {
      say(
          String.format(
              "that is more than the %s asked for: what is left is no block, cannot be removed,"
                  + " or came meanwhile",
              Figures.bytes(result.targetBytes())));
    }
  }
}

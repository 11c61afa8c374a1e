package ucm.cli.directory;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.cli.output.Columns;
import ucm.cli.output.UsageException;

/** A command that reads all blocks of directories and tells of files that are not as they should be. */
abstract class ReadCommand extends DirectoryCommand {

  private static final long MB = 1_000_000;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "threads that read (default: ${DEFAULT-VALUE})")
  int threads = 2;

  @Option(
      names = "--max-mbps",
      paramLabel = "MB",
      description =
          "most megabytes (10^6 bytes) read in a second, so that engines keep theirs; 0, the"
              + " default, is without limit")
  private int maxMegabytesPerSecond = 0;

  /** Files that are not as they should be, in the order in which they were found. */
  final List<Damage> damages = new ArrayList<>();

  /** What programs are told of each of them. */
  static Columns<Damage> damageColumns() {
    return new Columns<Damage>()
        .data("path", Damage::path)
        .data("reason", Damage::reason)
        .data("damaged", Damage::isDamaged);
  }

  @Override
  final StoreDirectories open(Map<String, ?> more) {
    UsageException.within("--threads", threads, 1, 1024);
    UsageException.atLeast("--max-mbps", maxMegabytesPerSecond, 0);
    return super.open(more);
  }

  /** 0 for no limit. */
  final long maxBytesPerSecond() {
    return maxMegabytesPerSecond * MB;
  }
}

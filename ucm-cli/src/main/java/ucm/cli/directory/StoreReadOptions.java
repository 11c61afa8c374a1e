package ucm.cli.directory;

import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;

/** How hard a command that reads all blocks of directories works. */
final class StoreReadOptions {

  private static final long MB = 1_000_000;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "threads that read (default: ${DEFAULT-VALUE})")
  private int threads = 2;

  @Option(
      names = "--max-mbps",
      paramLabel = "MB",
      description =
          "most megabytes (10^6 bytes) read in a second, so that engines keep theirs; 0, the"
              + " default, is without limit")
  private int maxMegabytesPerSecond = 0;

  /** Refuses what cannot be; called before anything is opened. */
  void require() {
    UsageException.within("--threads", threads, 1, 1024);
    UsageException.atLeast("--max-mbps", maxMegabytesPerSecond, 0);
  }

  int threads() {
    return threads;
  }

  /** 0 for no limit. */
  long maxBytesPerSecond() {
    return maxMegabytesPerSecond * MB;
  }
}

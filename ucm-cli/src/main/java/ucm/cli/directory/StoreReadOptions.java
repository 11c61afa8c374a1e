package ucm.cli.directory;

import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;

/** How hard a command that reads all blocks of directories works. */
final class StoreReadOptions {

  private static final long MB = 1_000_000;

  @Option(
      names = "--threads",
      paramLabel = "N",
      defaultValue = "2",
      description = "threads that read (default: ${DEFAULT-VALUE})")
  private int threads;

  @Option(
      names = "--max-mbps",
      paramLabel = "MB",
      defaultValue = "0",
      description =
          "most megabytes (10^6 bytes) read in a second, so that engines keep theirs; 0, the"
              + " default, is without limit")
  private int maxMegabytesPerSecond;

  /** Refuses what cannot be; called before anything is opened. */
  void require() {
    if (threads < 1 || threads > 1024) {
      throw new UsageException("--threads is 1 to 1024; found " + threads);
    }
    if (maxMegabytesPerSecond < 0) {
      throw new UsageException("--max-mbps is 0 or more; found " + maxMegabytesPerSecond);
    }
  }

  int threads() {
    return threads;
  }

  /** 0 for no limit. */
  long maxBytesPerSecond() {
    return maxMegabytesPerSecond * MB;
  }
}

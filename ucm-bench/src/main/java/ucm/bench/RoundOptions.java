package ucm.bench;

import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;

/** How often a benchmark measures, and on how many threads the machine's limits. */
final class RoundOptions {

  @Option(
      names = "--repeat",
      paramLabel = "N",
      description = "rounds that count; fewer than 7 say little (default: ${DEFAULT-VALUE})")
  int repeat = 7;

  @Option(
      names = "--warmup",
      paramLabel = "N",
      description = "rounds before them (default: ${DEFAULT-VALUE})")
  int warmup = 3;

  @Option(
      names = "--threads",
      paramLabel = "N",
      description = "threads of the machine's limits (default: the number of processors)")
  int threads = Runtime.getRuntime().availableProcessors();

  void require() {
    UsageException.atLeast("--repeat", repeat, 1);
    UsageException.atLeast("--warmup", warmup, 0);
    UsageException.atLeast("--threads", threads, 1);
  }
}

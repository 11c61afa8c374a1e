package ucm.dist;

import picocli.CommandLine.Option;

/** Which form a command prints its findings in; tables unless one is chosen. */
final class FormatOptions {

  @Option(names = "--json", description = "print JSON instead of tables")
  private boolean json;

  @Option(
      names = "--csv",
      description = "print the main table as CSV, with a line of names and plain numbers")
  private boolean csv;

  boolean json() {
    if (json && csv) {
      throw new UsageException("--json and --csv exclude each other");
    }
    return json;
  }

  boolean csv() {
    return csv && !json();
  }
}

package ucm.cli.output;

import java.io.PrintWriter;
import picocli.CommandLine.Option;

/** Which form a command prints its findings in; tables unless one is chosen. */
public final class FormatOptions {

  @Option(names = "--json", description = "print JSON instead of tables")
  private boolean json;

  @Option(
      names = "--csv",
      description = "print the main table as CSV, with a line of names and plain numbers")
  private boolean csv;

  /** Refuses two forms at once, for commands that work for long before they print. */
  public void check() {
    UsageException.when(json && csv, "--json and --csv exclude each other");
  }

  public boolean json() {
    check();
    return json;
  }

  public boolean csv() {
    check();
    return csv;
  }

  /** Prints a report in the form that was chosen. */
  public void print(PrintWriter out, FormattedReport report) {
    if (json()) {
      Json.print(out, report.data());
    } else if (csv()) {
      Csv.print(out, report.rows());
    } else {
      report.print(out);
    }
  }
}

package ucm.cli.output;

import java.io.PrintWriter;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import picocli.CommandLine.Option;
import tools.jackson.databind.PropertyNamingStrategies;
import tools.jackson.databind.SerializationFeature;
import tools.jackson.databind.json.JsonMapper;

/** Which form a command prints its findings in; tables unless one is chosen. */
public final class FormatOptions {
  private static final JsonMapper JSON =
      JsonMapper.builder()
          .enable(SerializationFeature.INDENT_OUTPUT)
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .build();

  @Option(names = "--json", description = "print JSON instead of tables")
  private boolean json;

  @Option(
      names = "--csv",
      description = "print the main table as CSV, with a line of names and plain numbers")
  private boolean csv;

  /** What a command found, in each of the forms. */
  public interface Report {

    /** All of it, for JSON. */
    Object data();

    /** The main table, for CSV: rows with the same names; none where the findings have no such table. */
    List<Fields> rows();

    /** Prints tables and sentences for people. */
    void print(PrintWriter out);
  }

  /** Refuses two forms at once, for commands that work for long before they print. */
  public void check() {
    UsageException.when(json && csv, "--json and --csv exclude each other");
  }

  /** Prints a report in the form that was chosen. */
  public void print(PrintWriter out, Report report) {
    check();
    if (json) {
      json(out, report.data());
    } else if (csv) {
      List<Fields> rows = report.rows();
      UsageException.when(
          rows.isEmpty(),
          "--csv has no row to print here: without it, or with --json, more is said");
      line(out, rows.getFirst().keySet());
      rows.forEach(row -> line(out, row.values()));
      out.flush();
    } else {
      report.print(out);
    }
  }

  /** Prints plain maps, lists, records, texts and numbers as JSON. */
  public static void json(PrintWriter out, Object data) {
    out.println(JSON.writeValueAsString(data));
  }

  /** A line as in RFC 4180, but for its end, which is a newline alone. */
  private static void line(PrintWriter out, Collection<?> cells) {
    out.print(cells.stream().map(FormatOptions::quoted).collect(Collectors.joining(",", "", "\n")));
  }

  private static String quoted(Object value) {
    String cell = value.toString();
    boolean plain = cell.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
    return plain ? cell : '"' + cell.replace("\"", "\"\"") + '"';
  }
}

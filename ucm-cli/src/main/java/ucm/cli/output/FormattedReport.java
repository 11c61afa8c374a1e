package ucm.cli.output;

import java.io.PrintWriter;
import java.util.List;
import java.util.Map;

/** What a command found, in each of the forms of {@link FormatOptions}. */
public interface FormattedReport {

  /** All of it, for JSON. */
  Map<String, Object> data();

  /** The main table, for CSV: each row by the names of its columns. */
  List<Map<String, Object>> rows();

  /** Prints tables and sentences for people. */
  void print(PrintWriter out);
}

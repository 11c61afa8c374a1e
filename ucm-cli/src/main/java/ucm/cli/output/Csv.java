package ucm.cli.output;

import java.io.PrintWriter;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Prints rows of plain values as CSV (RFC 4180, but lines end in a newline alone). */
public final class Csv {

  private Csv() {}

  /** Prints rows, at least one and all with the same keys, below a line of names. */
  public static void print(PrintWriter out, List<Map<String, Object>> rows) {
    line(out, rows.getFirst().keySet());
    for (Map<String, Object> row : rows) {
      line(out, row.values());
    }
    out.flush();
  }

  private static void line(PrintWriter out, Iterable<?> cells) {
    for (Iterator<?> left = cells.iterator(); left.hasNext(); ) {
      out.print(quoted(String.valueOf(left.next())));
      out.print(left.hasNext() ? ',' : '\n');
    }
  }

  private static String quoted(String cell) {
    boolean plain = cell.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
    return plain ? cell : '"' + cell.replace("\"", "\"\"") + '"';
  }
}

package ucm.cli.output;

import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;

/** A table for people: columns aligned, numbers to the right. Used by one thread. */
public final class Table {

  private static final String GAP = "  ";

  private final List<List<String>> rows = new ArrayList<>();
  private final int columns;

  public Table(String... head) {
    columns = head.length;
    rows.add(List.of(head));
  }

  public void row(String... cells) {
    if (cells.length != columns) {
      throw new IllegalArgumentException("a row has " + columns + " cells; found " + cells.length);
    }
    rows.add(List.of(cells));
  }

  /** Prints the table, and an empty line below it. */
  public void printSection(PrintWriter out) {
    print(out);
    out.println();
  }

  public void print(PrintWriter out) {
    int[] widths = new int[columns];
    boolean[] right = new boolean[columns];
    for (int c = 0; c < columns; c++) {
      int column = c;
      widths[c] = rows.stream().mapToInt(row -> row.get(column).length()).max().orElse(0);
      right[c] =
          rows.size() > 1 && rows.stream().skip(1).allMatch(row -> isNumber(row.get(column)));
    }
    for (List<String> row : rows) {
      StringBuilder line = new StringBuilder();
      for (int c = 0; c < columns; c++) {
        String pad = " ".repeat(widths[c] - row.get(c).length());
        line.append(right[c] ? pad + row.get(c) : row.get(c) + pad);
        line.append(GAP);
      }
      out.println(line.toString().stripTrailing());
    }
  }

  private static boolean isNumber(String cell) {
    return !cell.isEmpty()
        && (Character.isDigit(cell.charAt(cell.length() - 1))
            || cell.equals("-")
            || cell.endsWith("%"));
  }
}

package ucm.cli.output;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The columns of a table, written once for each form that it is printed in: a heading for people, a name
 * for JSON and CSV, and where the value comes from. Used by one thread.
 *
 * @param <T> what a row is about
 */
public final class Columns<T> {

  /** Without a heading where it is for programs alone, without a name where for people. */
  private record Column<T>(
      String head,
      String name,
      Function<T, ? extends @Nullable Object> value,
      Function<T, String> text) {}

  private final List<Column<T>> columns = new ArrayList<>();

  /** A column of all forms. */
  public <V> Columns<T> both(
      String head, String name, Function<T, V> value, Function<V, String> text) {
    columns.add(new Column<>(head, name, value, value.andThen(text)));
    return this;
  }

  /** A column of all forms, shown to people as it is. */
  public Columns<T> both(String head, String name, Function<T, ? extends @Nullable Object> value) {
    columns.add(new Column<>(head, name, value, row -> String.valueOf(value.apply(row))));
    return this;
  }

  /** A column for people alone. */
  public Columns<T> text(String head, Function<T, String> text) {
    columns.add(new Column<>(head, "", text, text));
    return this;
  }

  /** A column for programs alone. */
  public Columns<T> data(String name, Function<T, ? extends @Nullable Object> value) {
    columns.add(new Column<>("", name, value, _ -> ""));
    return this;
  }

  public Table table(Iterable<T> rows) {
    List<Column<T>> shown = columns.stream().filter(column -> !column.head.isEmpty()).toList();
    Table table = new Table(shown.stream().map(Column::head).toArray(String[]::new));
    for (T row : rows) {
      table.row(shown.stream().map(column -> column.text.apply(row)).toArray(String[]::new));
    }
    return table;
  }

  public Fields data(T row) {
    Fields fields = new Fields();
    for (Column<T> column : columns) {
      if (!column.name.isEmpty()) {
        Fields _ = fields.with(column.name, column.value.apply(row));
      }
    }
    return fields;
  }

  public List<Fields> data(Collection<T> rows) {
    return rows.stream().map(this::data).toList();
  }
}

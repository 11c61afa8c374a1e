package ucm.api.config;

/**
 * Where a configured value came from.
 *
 * @param source a file, or what set it: {@code engine}, {@code command line}
 * @param line 1-based line in the file; 0 when there is none
 * @param column 1-based column; 0 when there is none
 */
public record ConfigOrigin(String source, int line, int column)
    implements Comparable<ConfigOrigin> {

  /** A source without lines. */
  public static ConfigOrigin of(String source) {
    return new ConfigOrigin(source, 0, 0);
  }

  @Override
  public int compareTo(ConfigOrigin other) {
    int bySource = source.compareTo(other.source);
    int byLine = bySource != 0 ? bySource : Integer.compare(line, other.line);
    return byLine != 0 ? byLine : Integer.compare(column, other.column);
  }

  @Override
  public String toString() {
    return line == 0 ? source : source + ":" + line + ":" + column;
  }
}

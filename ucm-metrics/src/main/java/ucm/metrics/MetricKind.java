package ucm.metrics;

/** The kinds of instruments, as the configuration file calls its sections. */
enum MetricKind {
  COUNTER("counter"),
  GAUGE("gauge"),
  HISTOGRAM("histogram");

  private final String section;

  MetricKind(String section) {
    this.section = section;
  }

  /** The name of its section in the file; older files add an {@code s}. */
  String section() {
    return section;
  }
}

package ucm.bench.gpu;

/** Which way bytes go. */
enum Direction {
  DOWN("host to device"),
  UP("device to host"),
  BOTH("both at once");

  final String text;

  Direction(String text) {
    this.text = text;
  }
}

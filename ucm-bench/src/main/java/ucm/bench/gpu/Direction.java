package ucm.bench.gpu;

/** Which way bytes go; measured in this order. */
enum Direction {
  UP("device to host"),
  DOWN("host to device"),
  BOTH("both at once");

  final String text;

  Direction(String text) {
    this.text = text;
  }
}

package ucm.dist;

/**
 * What the machine did by itself in one round, beside the store.
 *
 * <p>A front stage named Cache moves bytes through memory of its own, so what it does at once is
 * limited by copying, and what goes through it to the medium takes both times one after the other.
 * Any other pipeline is limited by the medium.
 */
final class BenchLimits {

  private final boolean buffered;
  private double copy;
  private double write;
  private double read;
  private double checkedRead;
  private double existing;
  private double absent;

  BenchLimits(boolean buffered) {
    this.buffered = buffered;
  }

  void copied(double gigabytesPerSecond) {
    copy = gigabytesPerSecond;
  }

  void wrote(double gigabytesPerSecond) {
    write = gigabytesPerSecond;
  }

  void read(double gigabytesPerSecond) {
    read = gigabytesPerSecond;
  }

  void readChecked(double gigabytesPerSecond) {
    checkedRead = gigabytesPerSecond;
  }

  void asked(double existingPerSecond, double absentPerSecond) {
    existing = existingPerSecond;
    absent = absentPerSecond;
  }

  /** Whether a stage with memory of its own is in front. */
  boolean isBuffered() {
    return buffered;
  }

  /** The medium, when what it gives is checked as a store checks it: GB/s. */
  double checkedRead() {
    return checkedRead;
  }

  String checkedReadName() {
    return "open+pread+CRC32C+close";
  }

  /** Until the engine may go on after a dump, or has what is in the front stage: GB/s. */
  double frontWrite() {
    return buffered ? copy : write;
  }

  String frontWriteName() {
    return buffered ? "memcpy" : "create+pwrite+close";
  }

  double frontRead() {
    return buffered ? copy : read;
  }

  String frontReadName() {
    return buffered ? "memcpy" : "open+pread+close";
  }

  /** Through all stages: GB/s. */
  double throughWrite() {
    return buffered ? 1 / (1 / copy + 1 / write) : write;
  }

  String throughWriteName() {
    return buffered ? "memcpy, then create+pwrite+close" : "create+pwrite+close";
  }

  double throughRead() {
    return buffered ? 1 / (1 / copy + 1 / read) : read;
  }

  String throughReadName() {
    return buffered ? "open+pread+close, then memcpy" : "open+pread+close";
  }

  /** Answers of access(2) a second on one thread. */
  double existing() {
    return existing;
  }

  double absent() {
    return absent;
  }
}

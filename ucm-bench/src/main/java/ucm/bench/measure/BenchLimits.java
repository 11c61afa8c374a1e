package ucm.bench.measure;

/**
 * What the machine did by itself in one round, beside the store.
 *
 * <p>A front stage named Cache moves bytes through memory of its own, so what it does at once is
 * limited by copying, and what goes through it to the volume takes both times one after the other.
 * Any other pipeline is limited by the volume.
 */
public final class BenchLimits {

  private final boolean buffered;
  private double copy;
  private double write;
  private double read;
  private double checkedRead;
  private double existing;
  private double absent;

  public BenchLimits(boolean buffered) {
    this.buffered = buffered;
  }

  public void copied(double gigabytesPerSecond) {
    copy = gigabytesPerSecond;
  }

  public void wrote(double gigabytesPerSecond) {
    write = gigabytesPerSecond;
  }

  public void read(double gigabytesPerSecond) {
    read = gigabytesPerSecond;
  }

  public void readChecked(double gigabytesPerSecond) {
    checkedRead = gigabytesPerSecond;
  }

  public void asked(double existingPerSecond, double absentPerSecond) {
    existing = existingPerSecond;
    absent = absentPerSecond;
  }

  /** Whether the upper stage has memory of its own. */
  public boolean isBuffered() {
    return buffered;
  }

  /** The volume, when what it gives is checked as a store checks it: GB/s. */
  public double checkedRead() {
    return checkedRead;
  }

  public String checkedReadName() {
    return "open+pread+CRC32C+close";
  }

  /** Until the engine may go on after a dump, or has what is in the front stage: GB/s. */
  public double frontWrite() {
    return buffered ? copy : write;
  }

  public String frontWriteName() {
    return buffered ? "memcpy" : "create+pwrite+close";
  }

  public double frontRead() {
    return buffered ? copy : read;
  }

  public String frontReadName() {
    return buffered ? "memcpy" : "open+pread+close";
  }

  /** Through all stages: GB/s. */
  public double throughWrite() {
    return buffered ? 1 / (1 / copy + 1 / write) : write;
  }

  public String throughWriteName() {
    return buffered ? "memcpy, then create+pwrite+close" : "create+pwrite+close";
  }

  public double throughRead() {
    return buffered ? 1 / (1 / copy + 1 / read) : read;
  }

  public String throughReadName() {
    return buffered ? "open+pread+close, then memcpy" : "open+pread+close";
  }

  /** Answers of access(2) a second on one thread. */
  public double existing() {
    return existing;
  }

  public double absent() {
    return absent;
  }
}

package ucm.platform.thread;

/**
 * How one thread spends its time at work, told to {@link ThreadDemand} bit by bit. For that
 * thread alone.
 */
final class WorkTime {

  // A shorter time tells nothing, a longer one is cut into several.
  private static final long REPORT_NANOS = 1_000_000;

  private final ThreadUsage usage;
  private final ThreadDemand demand;
  private long start;
  private long processorNanos;
  private long waits;

  WorkTime(ThreadUsage usage, ThreadDemand demand) {
    this.usage = usage;
    this.demand = demand;
  }

  /** The thread begins to work. */
  void begin(long now) {
    usage.read();
    next(now);
  }

  /** The thread is still at work. */
  void passed(long now) {
    if (now - start >= REPORT_NANOS) {
      usage.read();
      demand.worked(now - start, usage.processorNanos() - processorNanos, usage.waits() > waits);
      next(now);
    }
  }

  private void next(long now) {
    start = now;
    processorNanos = usage.processorNanos();
    waits = usage.waits();
  }
}

package ucm.bench.simulator;

/** The time of a simulated engine: nanoseconds since an origin of its own. */
public interface EngineClock {

  /** What time it is. */
  long nanos();

  /** Returns when a time has come; at once when it is past. */
  void waitUntil(long nanos) throws InterruptedException;
}

package ucm.bench.simulator;

/**
 * Time that passes only by being waited for, at once. Right for an engine that moves no bytes, as then
 * nothing but simulated compute takes time. Used by one thread.
 */
public final class VirtualClock implements EngineClock {

  private long now;

  /** A clock at 0. */
  public VirtualClock() {}

  @Override
  public long nanos() {
    return now;
  }

  @Override
  public void waitUntil(long nanos) {
    now = Math.max(now, nanos);
  }
}

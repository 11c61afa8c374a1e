package ucm.bench.measure;

import java.util.EnumMap;
import java.util.Map;

/**
 * What the machine did by itself in one round, beside the store.
 *
 * <p>A front stage named Cache moves bytes through memory of its own, so what it does at once is
 * limited by copying, and what goes through it to the volume takes both times one after the other.
 * Any other pipeline is limited by the volume.
 *
 * @param isBuffered whether the upper stage has memory of its own
 */
public record BenchLimits(boolean isBuffered, Map<Kind, Double> found) {
  /** What was measured: in GB/s, and answers of access(2) a second on one thread. */
  public enum Kind {
    COPY,
    WRITE,
    READ,
    /** Reading what is checked as a store checks it. */
    CHECKED_READ,
    EXISTING,
    ABSENT
  }

  public BenchLimits(boolean isBuffered) {
    this(isBuffered, new EnumMap<>(Kind.class));
  }

  public void set(Kind kind, double value) {
    found.put(kind, value);
  }

  public double get(Kind kind) {
    return found.getOrDefault(kind, 0.0);
  }

  public String checkedReadName() {
    return "open+pread+CRC32C+close";
  }

  /** Until the engine may go on after a dump: GB/s. */
  public double frontWrite() {
    return get(isBuffered ? Kind.COPY : Kind.WRITE);
  }

  public String frontWriteName() {
    return isBuffered ? "memcpy" : "create+pwrite+close";
  }

  /** Until the engine has what is in the front stage: GB/s. */
  public double frontRead() {
    return get(isBuffered ? Kind.COPY : Kind.READ);
  }

  public String frontReadName() {
    return isBuffered ? "memcpy" : "open+pread+close";
  }

  /** Through all stages: GB/s. */
  public double throughWrite() {
    return through(get(Kind.WRITE));
  }

  public String throughWriteName() {
    return isBuffered ? "memcpy, then create+pwrite+close" : "create+pwrite+close";
  }

  public double throughRead() {
    return through(get(Kind.READ));
  }

  public String throughReadName() {
    return isBuffered ? "open+pread+close, then memcpy" : "open+pread+close";
  }

  private double through(double volume) {
    return isBuffered ? 1 / (1 / get(Kind.COPY) + 1 / volume) : volume;
  }
}

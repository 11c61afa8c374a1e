package ucm.bench.measure;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.cli.output.Durations;
import ucm.pipeline.Pipeline;

/**
 * What an instance of a pipeline takes to open in the folders that the warm-up has filled, to be there
 * with nothing to do, and to close.
 *
 * @param openMillis until it could be used
 * @param closeMillis until nothing of it was left
 * @param idle null when it was not looked at
 */
public record BenchLife(double openMillis, double closeMillis, @Nullable Idle idle) {

  // What goes on after work is over by then.
  private static final int SETTLE_SECONDS = 2;

  /**
   * What nothing takes.
   *
   * @param seconds how long it was looked at
   * @param instances of the pipeline that were open
   * @param processorShare time of all threads of the process by the time that passed: 1 is one processor
   */
  record Idle(int seconds, int instances, double processorShare) {}

  /**
   * Looks on for some seconds, or not at all, while nothing is done by the open instances, and
   * closes one.
   */
  public static BenchLife of(double openMillis, Pipeline pipeline, int instances, int seconds)
      throws InterruptedException {
    Idle idle = seconds == 0 ? null : measureIdle(instances, seconds);
    long start = System.nanoTime();
    pipeline.close();
    return new BenchLife(openMillis, millisSince(start), idle);
  }

  private static Idle measureIdle(int instances, int seconds) throws InterruptedException {
    OperatingSystemMXBean process =
        ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    TimeUnit.SECONDS.sleep(SETTLE_SECONDS);
    long start = System.nanoTime();
    long used = process.getProcessCpuTime();
    TimeUnit.SECONDS.sleep(seconds);
    used = process.getProcessCpuTime() - used;
    return new Idle(seconds, instances, (double) used / (System.nanoTime() - start));
  }

  /** Milliseconds since a time of {@link System#nanoTime}. */
  public static double millisSince(long nanos) {
    return (System.nanoTime() - nanos) / 1e6;
  }

  /** For JSON. */
  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("open_ms", openMillis);
    data.put("close_ms", closeMillis);
    if (idle != null) {
      data.put("idle_s", idle.seconds());
      data.put("idle_instances", idle.instances());
      data.put("idle_processor_share", idle.processorShare());
    }
    return data;
  }

  /** A sentence for people. */
  @Override
  public String toString() {
    String text =
        "An instance opened in %s ms and closed in %s ms."
            .formatted(Durations.millis(openMillis), Durations.millis(closeMillis));
    if (idle == null) {
      return text;
    }
    return text
        + String.format(
            Locale.ROOT,
            " With nothing to do for %d s, %d instances took %.2f%% of a processor.",
            idle.seconds(),
            idle.instances(),
            100 * idle.processorShare());
  }
}

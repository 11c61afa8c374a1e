package ucm.metrics;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.util.List;
import ucm.api.StoreMetrics;

/** What the Java runtime tells of itself: heap and garbage collection. */
final class JavaMetrics {

  private JavaMetrics() {}

  static void show(StoreMetrics scope) {
    MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
    List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans();
    scope.gauge(
        "jvm_heap_used_bytes",
        "Bytes of the Java heap in use; blocks lie outside it.",
        () -> memory.getHeapMemoryUsage().getUsed());
    scope.gauge(
        "jvm_gc_collections",
        "Garbage collections of the Java heap since the process began.",
        () -> collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionCount).sum());
    scope.gauge(
        "jvm_gc_time_ms",
        "Time in those collections.",
        () -> collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionTime).sum());
  }
}

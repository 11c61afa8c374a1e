package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import ucm.api.BlockLayout;

/** Shared segments of these tests, under names that no other build on this machine uses. */
final class Segments {

  private static final String OURS = "test-" + ProcessHandle.current().pid() + "-";

  private Segments() {}

  /** The unique_id of a test's instance. */
  static String id(String name) {
    return OURS + name;
  }

  /** What a worker that shares a buffer is configured with. */
  static Map<String, Object> settings(String name, double gib) {
    return new TreeMap<>(
        Map.of(
            "share_buffer_enable", true, "unique_id", id(name), "cache_buffer_capacity_gb", gib));
  }

  /** The same for so many blocks, given to {@link TestCache}. */
  static Map<String, Object> settings(String name, BlockLayout layout, int blocks) {
    return settings(name, TestCache.gib(layout, (long) blocks * layout.shardCount()));
  }

  /** The file of an instance. */
  static Path path(String name) {
    return SegmentFolder.DEV_SHM.segment(id(name));
  }

  /** The segments of these tests that are there. */
  static List<Path> all() {
    return SegmentFolder.DEV_SHM.segments().stream()
        .filter(path -> path.getFileName().toString().contains(OURS))
        .toList();
  }

  /** Fails when a segment was left behind. */
  static void requireNone() {
    assertThat(all()).as("segments left behind").isEmpty();
  }
}

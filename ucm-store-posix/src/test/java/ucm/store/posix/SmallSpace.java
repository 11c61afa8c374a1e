package ucm.store.posix;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.store.common.BlockFooter;
import ucm.testkit.BlockBytes;

/** Stores with room for a few blocks, for tests of what happens when it runs short. */
final class SmallSpace {

  static final BlockLayout LAYOUT = BlockLayout.uniform(1024, 4096, 8192);

  /** Bytes that the file of a block takes. */
  static final long FILE = FolderTree.inUnits(new BlockFooter(LAYOUT).fileSize());

  private SmallSpace() {}

  /** Room for some blocks; rounds are made by the test, but for the first. */
  static Map<String, Object> room(int blocks, Map<String, Object> more) {
    Map<String, Object> settings = new TreeMap<>();
    settings.put("posix_capacity_gb", (double) (blocks * FILE) / SpaceLimit.GB);
    settings.put("posix_gc_check_interval_sec", 86_400);
    settings.put("posix_gc_trigger_threshold_ratio", 0.7);
    settings.put("posix_gc_recycle_percent", 0.1);
    // One fault after the other is what these tests are about.
    settings.put("store_health.enabled", false);
    settings.putAll(more);
    return settings;
  }

  /** As {@link #room}, on three backends with folders for a few blocks. */
  static Map<String, Object> onThree(Path directory, int blocks, Map<String, Object> more) {
    Map<String, Object> all = new TreeMap<>(more);
    all.put("storage_backends", List.of(directory + "/a", directory + "/b", directory + "/c"));
    all.put("data_dir_shard_bytes", 1);
    return room(blocks, all);
  }

  /** Dumps blocks in a store that collects nothing, and closes it. */
  static BlockIds filled(Path directory, long seed, int blocks) throws Exception {
    BlockIds ids = BlockBytes.ids(seed, blocks);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      stores.dump(stores.open(onThree(directory, 10 * blocks, Map.of())), ids);
    }
    return ids;
  }

  /** The names of the blocks below a directory. */
  static Set<String> names(Path directory) throws Exception {
    Set<String> names = new TreeSet<>();
    SmallSpace.blocks(directory).forEach(path -> names.add(path.getFileName().toString()));
    return names;
  }

  /** The files of blocks below a directory. */
  static List<Path> blocks(Path directory) throws IOException {
    return below(directory).keySet().stream()
        .filter(path -> path.getFileName().toString().matches("[0-9a-f]{32}"))
        .toList();
  }

  /** What the files below a directory take, but for those that the collectors share. */
  static long bytes(Path directory) throws IOException {
    long[] sum = {0};
    below(directory)
        .forEach(
            (path, attributes) -> {
              if (attributes.isRegularFile() && !path.toString().contains("/.wri")) {
                sum[0] += (attributes.size() + 4095) / 4096 * 4096;
              }
            });
    return sum[0];
  }

  /**
   * All below a directory, as it was seen: collectors and writers remove files meanwhile. What the
   * collectors share is left out.
   */
  static Map<Path, BasicFileAttributes> below(Path directory) throws IOException {
    Map<Path, BasicFileAttributes> found = new LinkedHashMap<>();
    Files.walkFileTree(
        directory,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
            if (isShared(folder)) {
              return FileVisitResult.SKIP_SUBTREE;
            }
            found.put(folder, attributes);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
            if (!isShared(file)) {
              found.put(file, attributes);
            }
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
            if (e instanceof NoSuchFileException) {
              // A collector was faster.
              return FileVisitResult.CONTINUE;
            }
            throw e;
          }
        });
    return found;
  }

  private static boolean isShared(Path path) {
    return path.getFileName().toString().startsWith(".gc");
  }

  /** The file of a block, wherever it is. */
  static Path file(Path directory, BlockIds ids, int i) throws IOException {
    return blocks(directory).stream()
        .filter(path -> path.endsWith(ids.hex(i)))
        .findFirst()
        .orElseThrow();
  }

  /** Says that a block was used some time after 2020 began. */
  static void usedAt(Path file, long seconds) throws IOException {
    Files.setAttribute(
        file, "lastAccessTime", FileTime.from(1_577_836_800 + seconds, TimeUnit.SECONDS));
  }

  /** When a block was used, in seconds since 2020 began. */
  static long usedAt(Path file) throws IOException {
    return ((FileTime) Files.getAttribute(file, "lastAccessTime")).to(TimeUnit.SECONDS)
        - 1_577_836_800;
  }

  /** Some of a list. */
  static BlockIds some(BlockIds ids, int... which) {
    long[] words = new long[2 * which.length];
    for (int i = 0; i < which.length; i++) {
      words[2 * i] = ids.high(which[i]);
      words[2 * i + 1] = ids.low(which[i]);
    }
    return BlockIds.wrap(words);
  }
}

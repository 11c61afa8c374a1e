package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.DirectorySummary;
import ucm.api.StoreConfig;
import ucm.api.StoreDirectories;
import ucm.api.StoreDirectories.Damage;
import ucm.api.StoreDirectories.Observer;
import ucm.api.StoreDirectories.VerifyPlan;
import ucm.testkit.BlockBytes;

/** A directory that a store has filled, for tests of what people see of it and do to it. */
final class StoredTree {

  static final VerifyPlan LOOK_ONLY = new VerifyPlan(3, 0, false);
  static final VerifyPlan MOVE = new VerifyPlan(3, 0, true);

  /** Wants no news. */
  static final Observer QUIET = (done, total) -> {};

  /** For verifying what must be in order. */
  static final Consumer<Damage> NO_DAMAGE =
      damage -> {
        throw new AssertionError(damage);
      };

  private final Path root;

  StoredTree(Path root) {
    this.root = root;
  }

  static StoreDirectories directories(Path... roots) {
    return directories(Map.of(), roots);
  }

  static StoreDirectories directories(Map<String, Object> more, Path... roots) {
    Map<String, Object> settings = new HashMap<>(more);
    settings.put("storage_backends", Arrays.stream(roots).map(Path::toString).toList());
    StoreConfig config = StoreConfig.of(settings);
    StoreDirectories found = new PosixStore().directories(config);
    assertThat(config.problems()).isEmpty();
    return found;
  }

  StoreDirectories directories() {
    return directories(root);
  }

  DirectorySummary summary() {
    return directories().summarize(QUIET).getFirst();
  }

  /** Blocks of {@link SmallSpace#LAYOUT}. */
  BlockIds fill(long seed, int blocks) throws Exception {
    return fill(seed, blocks, SmallSpace.LAYOUT, Map.of());
  }

  BlockIds fill(long seed, int blocks, BlockLayout layout, Map<String, Object> settings)
      throws Exception {
    BlockIds ids = BlockBytes.ids(seed, blocks);
    try (TestStores stores = new TestStores(root, layout)) {
      stores.dump(stores.open(settings), ids);
    }
    return ids;
  }

  /** The file of a block, wherever it is. */
  Path file(BlockIds ids, int i) throws IOException {
    return SmallSpace.file(root, ids, i);
  }

  /** The ids of the blocks that are there. */
  Set<String> names() throws IOException {
    Set<String> names = new TreeSet<>();
    SmallSpace.blocks(root).forEach(path -> names.add(path.getFileName().toString()));
    return names;
  }

  /** All below a directory: kind, size, time of use and of change, and bytes, by name. */
  static Map<String, String> snapshot(Path root) throws IOException {
    Map<String, String> all = new TreeMap<>();
    try (Stream<Path> paths = Files.walk(root)) {
      for (Path path : paths.toList()) {
        String times = Files.getLastModifiedTime(path).toString();
        if (Files.isRegularFile(path)) {
          Object used = Files.getAttribute(path, "lastAccessTime");
          times += " " + used + " " + Arrays.hashCode(Files.readAllBytes(path));
          // This reading must not count.
          Files.setAttribute(path, "lastAccessTime", used);
        }
        all.put(path.toString(), times);
      }
    }
    return all;
  }
}

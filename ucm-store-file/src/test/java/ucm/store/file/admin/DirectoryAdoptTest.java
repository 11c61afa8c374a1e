package ucm.store.file.admin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.store.file.fixture.StoredTree.LOOK_ONLY;
import static ucm.store.file.fixture.StoredTree.NO_DAMAGE;
import static ucm.store.file.fixture.StoredTree.QUIET;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.admin.StoreDirectories.AdoptPlan;
import ucm.api.admin.StoreDirectories.AdoptResult;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.config.StoreConfig;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.StoredTree;
import ucm.store.file.fixture.TestStores;

/** Blocks of the original that get checksums, and what else lies beside them. */
final class DirectoryAdoptTest {

  private static final int BLOCKS = 40;
  private static final AdoptPlan PLAN = new AdoptPlan(3, 0, false);
  private static final Map<String, Object> SAID =
      Map.of("block_size", 9000, "shard_size", 3000, "tensor_size", 1000);

  @TempDir private Path directory;

  private final BlockLayout layout = BlockLayout.uniform(1000, 3000, 9000);
  private StoredTree tree;

  @BeforeEach
  void makeTree() {
    tree = new StoredTree(directory);
  }

  /** Files as the original writes them: the bytes of a block and no more. */
  private BlockIds fillBare(long seed, int blocks) throws Exception {
    BlockIds ids = tree.fill(seed, blocks, layout, Map.of());
    for (int i = 0; i < blocks; i++) {
      Path file = tree.file(ids, i);
      Files.write(file, Arrays.copyOf(Files.readAllBytes(file), 9000));
      SmallSpace.usedAt(file, i);
    }
    return ids;
  }

  private AdoptResult adopt(AdoptPlan plan, Map<String, Object> said) {
    return StoredTree.directories(said, directory).adopt(plan, QUIET, NO_DAMAGE);
  }

  @Test
  void givesBlocksTheFootersThatTheStoreWouldHaveWritten() throws Exception {
    BlockIds ids = tree.fill(1, BLOCKS, layout, Map.of());
    List<byte[]> written = new ArrayList<>();
    for (int i = 0; i < BLOCKS; i++) {
      written.add(Files.readAllBytes(tree.file(ids, i)));
      Files.write(tree.file(ids, i), Arrays.copyOf(written.get(i), 9000));
      SmallSpace.usedAt(tree.file(ids, i), i);
    }
    assertThat(adopt(new AdoptPlan(3, 0, true), SAID))
        .isEqualTo(new AdoptResult(BLOCKS, BLOCKS * 9000, 0, 0, 0, true));
    assertThat(tree.file(ids, 0)).as("a dry run").hasSize(9000);
    Object used = Files.getAttribute(tree.file(ids, 7), "lastAccessTime");
    assertThat(adopt(PLAN, SAID)).isEqualTo(new AdoptResult(BLOCKS, BLOCKS * 9000, 0, 0, 0, true));
    assertThat(Files.getAttribute(tree.file(ids, 7), "lastAccessTime")).isEqualTo(used);
    for (int i = 0; i < BLOCKS; i++) {
      assertThat(tree.file(ids, i)).hasBinaryContent(written.get(i));
    }
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open();
      assertThat(store.lookupPrefix(ids)).isEqualTo(BLOCKS - 1);
      assertThat(stores.load(store, ids).ok()).isTrue();
    }
    assertThat(adopt(PLAN, SAID).verifiable()).as("again").isEqualTo(BLOCKS);
  }

  @Test
  void learnsTheLayoutFromTheBlocksThatHaveFooters() throws Exception {
    BlockIds ids = fillBare(2, BLOCKS);
    assertThatThrownBy(() -> adopt(PLAN, Map.of()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("nothing tells how")
        .hasMessageContaining("[9000] bytes")
        .hasMessageContaining("block_size, shard_size and tensor_size");
    tree.fill(3, 2, layout, Map.of());
    tree.fill(4, 1, BlockLayout.uniform(500, 500, 4500), Map.of());
    AdoptResult result = adopt(PLAN, Map.of());
    assertThat(result).isEqualTo(new AdoptResult(BLOCKS, BLOCKS * 9000, 3, 0, 0, true));
    assertThat(tree.directories().verify(LOOK_ONLY, QUIET, NO_DAMAGE).blocks())
        .isEqualTo(BLOCKS + 3);
    assertThat(tree.file(ids, 0)).hasSize(12288 + 4096);
  }

  @Test
  void takesNoneOfTwoLayoutsOfOneSize() throws Exception {
    fillBare(5, 2);
    tree.fill(6, 1, layout, Map.of());
    tree.fill(7, 1, BlockLayout.uniform(4500, 4500, 9000), Map.of());
    assertThatThrownBy(() -> adopt(PLAN, Map.of())).hasMessageContaining("several layouts");
    assertThat(adopt(PLAN, SAID).adopted()).isEqualTo(2);
  }

  @Test
  void leavesAloneWhatIsNoBlockAndSaysWhatFails() throws Exception {
    BlockIds ids = fillBare(8, 6);
    Path outside = Files.createDirectory(directory.resolve("outside"));
    Path target = Files.copy(tree.file(ids, 1), outside.resolve("target"));
    byte[] before = Files.readAllBytes(target);
    Path other = tree.file(ids, 0);
    Files.write(other, new byte[8999]);
    Path link = tree.file(ids, 1);
    Files.delete(link);
    Files.createSymbolicLink(link, target);
    // One file under two names: at most one of them is right.
    Path second = tree.file(ids, 2);
    Files.delete(second);
    Files.createLink(second, tree.file(ids, 3));
    Path pipe = tree.file(ids, 4);
    Files.delete(pipe);
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    List<Damage> failures = new ArrayList<>();
    AdoptResult result =
        StoredTree.directories(SAID, directory)
            .adopt(new AdoptPlan(1, 0, false), QUIET, failures::add);
    assertThat(result).isEqualTo(new AdoptResult(2, 18_000, 0, 1, 1, true));
    assertThat(failures)
        .singleElement()
        .satisfies(failure -> assertThat(failure.reason()).contains("it holds another block"));
    assertThat(other).hasSize(8999);
    assertThat(Files.readAllBytes(target)).isEqualTo(before);
    try (TestStores stores = new TestStores(directory, layout)) {
      LocalFileStore store = stores.open();
      // Whatever is loaded is compared; the name that was adopted of the two is one of chance.
      assertThat(stores.load(store, ids.slice(5, 6)).ok()).isTrue();
      assertThat(stores.load(store, ids.slice(0, 1)).outcome(0)).isEqualTo(ShardOutcome.CORRUPT);
      assertThat(stores.load(store, ids.slice(1, 2)).outcome(0)).isEqualTo(ShardOutcome.MISSING);
    }
  }

  @Test
  void refusesALayoutThatCannotBe() {
    StoreConfig config =
        StoreConfig.of(
            Map.of(
                "storage_backends", directory.toString(), "block_size", 9000, "shard_size", 4000));
    assertThat(new LocalFileStore().directories(config)).isNotNull();
    assertThat(config.hasErrors()).isTrue();
  }

  @Test
  void endsWhenItIsToldTo() throws Exception {
    BlockIds ids = fillBare(10, 3);
    var stopped =
        new Observer() {
          @Override
          public void at(long done, long total) {}

          @Override
          public boolean isStopped() {
            return true;
          }
        };
    AdoptResult result = StoredTree.directories(SAID, directory).adopt(PLAN, stopped, NO_DAMAGE);
    assertThat(result.isComplete()).isFalse();
    assertThat(result.adopted()).isZero();
    assertThat(tree.file(ids, 0)).hasSize(9000);
  }

  @Test
  void anErrorInAThreadEndsTheWorkWithWhatItWas() throws Exception {
    fillBare(12, 3);
    Observer broken =
        (done, total) -> {
          throw new OutOfMemoryError("Java heap space");
        };
    assertThatThrownBy(() -> StoredTree.directories(SAID, directory).adopt(PLAN, broken, NO_DAMAGE))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("the work broke")
        .hasMessageContaining("Java heap space");
  }
}

package ucm.store.file.admin;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.store.file.fixture.SmallSpace.FILE;
import static ucm.store.file.fixture.StoredTree.LOOK_ONLY;
import static ucm.store.file.fixture.StoredTree.MOVE;
import static ucm.store.file.fixture.StoredTree.NO_DAMAGE;
import static ucm.store.file.fixture.StoredTree.QUIET;
import static ucm.store.file.fixture.StoredTree.directories;
import static ucm.store.file.fixture.StoredTree.snapshot;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoreDirectories.CollectPlan;
import ucm.api.admin.StoreDirectories.Damage;
import ucm.api.admin.StoreDirectories.VerifyResult;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.config.StoreConfig;
import ucm.platform.libc.Errno;
import ucm.store.file.LocalFileStore;
import ucm.store.file.fixture.FaultyFiles;
import ucm.store.file.fixture.SmallSpace;
import ucm.store.file.fixture.StoredTree;
import ucm.testkit.BlockBytes;

/** Summaries and verification of directories, on real trees. */
final class DirectoriesTest {

  private static final int BLOCKS = 300;
  private static final StoredLayout STORED = new StoredLayout(8192, 4096, 4, 1024);

  @TempDir private Path directory;

  private StoredTree tree;

  @BeforeEach
  void makeTree() {
    tree = new StoredTree(directory);
  }

  private static void damage(Path file, int at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[at] ^= 1;
    Files.write(file, bytes);
  }

  @Test
  void sumsUpHundredsOfBlocks() throws Exception {
    BlockIds ids = tree.fill(1, BLOCKS);
    SmallSpace.usedAt(tree.file(ids, 7), 5);
    DirectorySummary found = tree.summary();
    assertThat(found.blocks()).isEqualTo(BLOCKS);
    assertThat(found.payloadBytes()).isEqualTo(BLOCKS * 8192L);
    assertThat(found.usedBytes()).isEqualTo(BLOCKS * FILE);
    assertThat(found.layouts()).containsExactly(new LayoutCount(STORED, BLOCKS));
    assertThat(found.notes()).isEmpty();
    assertThat(found.oldestUse()).hasToString("2020-01-01T00:00:05Z");
    assertThat(found.newestUse()).isAfter("2026-01-01T00:00:00Z");
    assertThat(found.folders()).isBetween(200, BLOCKS);
    assertThat(found.freeBytes()).isBetween(1L, found.totalBytes());
    assertThat(found.collector()).isEqualTo("none");
    assertThat(found.faultyFiles() + found.otherFiles() + found.unverifiedBlocks()).isZero();
  }

  @Test
  void listsEveryBlock() throws Exception {
    BlockIds ids = tree.fill(2, BLOCKS);
    SmallSpace.usedAt(tree.file(ids, 3), 9);
    Map<String, StoredBlock> found = new HashMap<>();
    tree.directories().list(QUIET, block -> found.put(block.id(), block));
    assertThat(found).hasSize(BLOCKS);
    StoredBlock third = found.get(ids.hex(3));
    assertThat(third.byteSize()).isEqualTo(8192);
    assertThat(third.layout()).isEqualTo(STORED);
    assertThat(third.lastUse()).hasToString("2020-01-01T00:00:09Z");
    assertThat(third.directory()).isEqualTo(directory.toString());
  }

  @Test
  void saysWhatADirectoryIsNot() throws Exception {
    assertThat(tree.summary().notes())
        .singleElement()
        .asString()
        .contains("nothing was ever stored");
    Files.write(directory.resolve("letter.txt"), new byte[3]);
    Files.createDirectory(directory.resolve("photos"));
    assertThat(tree.summary().notes())
        .singleElement()
        .asString()
        .contains("no cache directory", "letter.txt, photos");
    Path missing = directory.resolve("missing");
    assertThatThrownBy(() -> directories(missing).summarize(QUIET))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining(missing.toString());
    assertThatThrownBy(() -> directories(directory.resolve("letter.txt")).summarize(QUIET))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("no directory");
  }

  @Test
  void tellsMixedTreesAndLayoutsAndFilesOfTheOriginal() throws Exception {
    BlockIds ids = tree.fill(3, 4);
    tree.fill(4, 3, BlockLayout.uniform(512, 1024, 4096), Map.of("data_dir_shard_bytes", 2));
    BlockIds bare = BlockBytes.ids(5, 2);
    for (int i = 0; i < 2; i++) {
      Path folder = Files.createDirectories(directory.resolve(bare.hex(i).substring(0, 3)));
      Files.write(folder.resolve(bare.hex(i)), new byte[8192]);
    }
    DirectorySummary found = tree.summary();
    assertThat(found.blocks()).isEqualTo(9);
    assertThat(found.unverifiedBlocks()).isEqualTo(2);
    assertThat(found.payloadBytes()).isEqualTo(6 * 8192 + 3 * 4096);
    assertThat(found.layouts())
        .containsExactly(
            new LayoutCount(STORED, 4), new LayoutCount(new StoredLayout(4096, 1024, 2, 512), 3));
    assertThat(String.join("|", found.notes()))
        .contains("[2, 3] digits", "2 layouts", "2 blocks carry no checksums");
    VerifyResult verified = tree.directories().verify(LOOK_ONLY, QUIET, NO_DAMAGE);
    assertThat(verified.blocks()).isEqualTo(7);
    assertThat(verified.unverified()).isEqualTo(2);
    assertThat(ids.size()).isEqualTo(4);
  }

  @Test
  void leavesLinksFoldersPipesAndForeignFilesAlone() throws Exception {
    BlockIds ids = tree.fill(6, 5);
    Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
    Path moved = elsewhere.resolve("block");
    Files.move(tree.file(ids, 0), moved);
    Path folder = directory.resolve(ids.hex(0).substring(0, 3));
    Files.createSymbolicLink(folder.resolve(ids.hex(0)), moved);
    Files.createDirectory(folder.resolve(ids.hex(0).substring(0, 31) + "f"));
    Process pipe =
        new ProcessBuilder("mkfifo", folder.resolve(ids.hex(0).substring(0, 31) + "e").toString())
            .start();
    assertThat(pipe.waitFor()).isZero();
    Files.write(folder.resolve("notes"), new byte[10]);
    Files.createSymbolicLink(directory.resolve("abc"), elsewhere);
    // A block in a folder that is not its own.
    Files.copy(tree.file(ids, 1), folder.resolve(ids.hex(1)));
    DirectorySummary found = tree.summary();
    assertThat(found.blocks()).isEqualTo(4);
    assertThat(found.otherFiles()).isEqualTo(5);
    assertThat(found.faultyFiles()).isZero();
    Map<String, String> before = snapshot(elsewhere);
    assertThat(tree.directories().verify(MOVE, QUIET, NO_DAMAGE).blocks()).isEqualTo(4);
    tree.directories().collect(new CollectPlan(0L, null, false), QUIET);
    assertThat(snapshot(elsewhere)).isEqualTo(before);
    assertThat(SmallSpace.blocks(folder)).as("link, folder, pipe, stray").hasSize(4);
  }

  @Test
  void findsEveryKindOfDamageAndChangesNothing() throws Exception {
    BlockIds ids = tree.fill(7, 40);
    for (int i = 0; i < 40; i++) {
      SmallSpace.usedAt(tree.file(ids, i), i);
    }
    damage(tree.file(ids, 0), 5);
    damage(tree.file(ids, 1), 8191);
    damage(tree.file(ids, 2), 8192 + 20);
    Files.write(tree.file(ids, 3), Arrays.copyOf(Files.readAllBytes(tree.file(ids, 3)), 9000));
    Files.write(tree.file(ids, 4), new byte[0]);
    Files.write(tree.file(ids, 5), new byte[12288]);
    Files.copy(tree.file(ids, 6), tree.file(ids, 8), StandardCopyOption.REPLACE_EXISTING);
    Map<String, String> before = snapshot(directory);
    Map<String, String> reasons = new HashMap<>();
    List<Long> progress = new ArrayList<>();
    VerifyResult result =
        tree.directories()
            .verify(
                LOOK_ONLY,
                (done, total) -> {
                  progress.add(done);
                  assertThat(total).isEqualTo(35 * 8192L);
                },
                damage -> {
                  assertThat(damage.isMoved()).isFalse();
                  assertThat(damage.isDamaged()).isTrue();
                  reasons.put(Path.of(damage.path()).getFileName().toString(), damage.reason());
                });
    assertThat(result).isEqualTo(new VerifyResult(33, 35 * 8192, 0, 7, 0, true));
    assertThat(progress).isSorted().hasSize(40);
    assertThat(reasons).hasSize(7);
    assertThat(reasons.get(ids.hex(0))).contains("shard 0 is damaged");
    assertThat(reasons.get(ids.hex(1))).contains("shard 1 is damaged");
    assertThat(reasons.get(ids.hex(2))).contains("footer is damaged");
    assertThat(reasons.get(ids.hex(3))).contains("no footer", "9000");
    assertThat(reasons.get(ids.hex(4))).contains("empty");
    assertThat(reasons.get(ids.hex(5))).contains("size of a file with a footer");
    assertThat(reasons.get(ids.hex(8))).contains("another block", ids.hex(6));
    assertThat(tree.summary().faultyFiles()).as("what stat sees without reading").isEqualTo(5);
    assertThat(snapshot(directory)).isEqualTo(before);
  }

  @Test
  void movesTheDamagedAsideWhenAsked() throws Exception {
    BlockIds ids = tree.fill(8, 20);
    damage(tree.file(ids, 4), 100);
    damage(tree.file(ids, 5), 100);
    List<Damage> damages = new ArrayList<>();
    tree.directories().verify(MOVE, QUIET, damages::add);
    assertThat(damages).hasSize(2).allMatch(Damage::isMoved);
    DirectorySummary found = tree.summary();
    assertThat(found.quarantinedFiles()).isEqualTo(2);
    assertThat(found.blocks()).isEqualTo(18);
    assertThat(tree.directories().verify(LOOK_ONLY, QUIET, NO_DAMAGE).blocks()).isEqualTo(18);
  }

  @Test
  void saysWhatCannotBeRead() throws Exception {
    BlockIds ids = tree.fill(9, 10);
    FaultyFiles files = new FaultyFiles();
    files.fail(tree.file(ids, 2).getParent(), Errno.EACCES, "openUnnoticed"::equals);
    files.fail(tree.file(ids, 3).getParent(), Errno.EACCES, "forEachName"::equals);
    StoreDirectories failing =
        BlockDirectories.of(
            LocalFileStore.KIND,
            files,
            UnaryOperator.identity(),
            StoreConfig.of(Map.of("storage_backends", directory.toString())));
    List<Damage> damages = new ArrayList<>();
    VerifyResult result = failing.verify(MOVE, QUIET, damages::add);
    assertThat(result.unreadable()).isEqualTo(2);
    assertThat(result.blocks()).isEqualTo(8);
    assertThat(damages).hasSize(2).noneMatch(Damage::isDamaged).noneMatch(Damage::isMoved);
    DirectorySummary found = failing.summarize(QUIET).getFirst();
    assertThat(found.blocks()).isEqualTo(8);
    assertThat(found.notes()).singleElement().asString().contains("EACCES", "2 folders or files");
  }
}

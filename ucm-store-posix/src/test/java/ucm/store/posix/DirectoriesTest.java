package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.store.posix.SmallSpace.FILE;
import static ucm.store.posix.SmallSpace.LAYOUT;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.DirectorySummary;
import ucm.api.DirectorySummary.LayoutCount;
import ucm.api.StoreConfig;
import ucm.api.StoreDirectories;
import ucm.api.StoreDirectories.CollectPlan;
import ucm.api.StoreDirectories.CollectResult;
import ucm.api.StoreDirectories.Damage;
import ucm.api.StoreDirectories.Observer;
import ucm.api.StoreDirectories.VerifyPlan;
import ucm.api.StoreDirectories.VerifyResult;
import ucm.api.StoreException;
import ucm.api.StoredBlock;
import ucm.api.StoredLayout;
import ucm.store.common.Errno;
import ucm.testkit.BlockBytes;

/** What people see of directories, and do to them, on real trees. */
final class DirectoriesTest {

  private static final int BLOCKS = 300;
  private static final StoredLayout STORED = new StoredLayout(8192, 4096, 4, 1024);
  private static final VerifyPlan LOOK_ONLY = new VerifyPlan(3, 0, false);
  private static final VerifyPlan MOVE = new VerifyPlan(3, 0, true);

  /** Wants no news. */
  private static final Observer QUIET = (done, total) -> {};

  @TempDir private Path directory;

  private StoreDirectories directories(Path... roots) {
    return directories(Map.of(), roots);
  }

  private StoreDirectories directories(Map<String, Object> more, Path... roots) {
    Map<String, Object> settings = new HashMap<>(more);
    settings.put("storage_backends", Arrays.stream(roots).map(Path::toString).toList());
    StoreConfig config = StoreConfig.of(settings);
    StoreDirectories found = new PosixStore().directories(config);
    assertThat(config.problems()).isEmpty();
    return found;
  }

  private DirectorySummary summary() {
    return directories(directory).summarize(QUIET).getFirst();
  }

  private BlockIds filled(long seed, int blocks) throws Exception {
    return filled(seed, blocks, LAYOUT, Map.of());
  }

  private BlockIds filled(long seed, int blocks, BlockLayout layout, Map<String, Object> settings)
      throws Exception {
    BlockIds ids = BlockBytes.ids(seed, blocks);
    try (TestStores stores = new TestStores(directory, layout)) {
      stores.dump(stores.open(settings), ids);
    }
    return ids;
  }

  private Path file(BlockIds ids, int i) throws IOException {
    return SmallSpace.file(directory, ids, i);
  }

  /** All below a directory: kind, size, time of use and of change, and bytes, by name. */
  private static Map<String, String> snapshot(Path root) throws IOException {
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

  private static void damage(Path file, int at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[at] ^= 1;
    Files.write(file, bytes);
  }

  @Test
  void sumsUpHundredsOfBlocks() throws Exception {
    BlockIds ids = filled(1, BLOCKS);
    SmallSpace.usedAt(file(ids, 7), 5);
    DirectorySummary found = summary();
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
    BlockIds ids = filled(2, BLOCKS);
    SmallSpace.usedAt(file(ids, 3), 9);
    Map<String, StoredBlock> found = new HashMap<>();
    directories(directory).list(QUIET, block -> found.put(block.id(), block));
    assertThat(found).hasSize(BLOCKS);
    StoredBlock third = found.get(ids.hex(3));
    assertThat(third.byteSize()).isEqualTo(8192);
    assertThat(third.layout()).isEqualTo(STORED);
    assertThat(third.lastUse()).hasToString("2020-01-01T00:00:09Z");
    assertThat(third.directory()).isEqualTo(directory.toString());
  }

  @Test
  void saysWhatADirectoryIsNot() throws Exception {
    assertThat(summary().notes()).singleElement().asString().contains("nothing was ever stored");
    Files.write(directory.resolve("letter.txt"), new byte[3]);
    Files.createDirectory(directory.resolve("photos"));
    assertThat(summary().notes())
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
    BlockIds ids = filled(3, 4);
    filled(4, 3, BlockLayout.uniform(512, 1024, 4096), Map.of("data_dir_shard_bytes", 2));
    BlockIds bare = BlockBytes.ids(5, 2);
    for (int i = 0; i < 2; i++) {
      Path folder = Files.createDirectories(directory.resolve(bare.hex(i).substring(0, 3)));
      Files.write(folder.resolve(bare.hex(i)), new byte[8192]);
    }
    DirectorySummary found = summary();
    assertThat(found.blocks()).isEqualTo(9);
    assertThat(found.unverifiedBlocks()).isEqualTo(2);
    assertThat(found.payloadBytes()).isEqualTo(6 * 8192 + 3 * 4096);
    assertThat(found.layouts())
        .containsExactly(
            new LayoutCount(STORED, 4), new LayoutCount(new StoredLayout(4096, 1024, 2, 512), 3));
    assertThat(String.join("|", found.notes()))
        .contains("[2, 3] digits", "2 layouts", "2 blocks carry no checksums");
    VerifyResult verified = directories(directory).verify(LOOK_ONLY, QUIET, this::unexpected);
    assertThat(verified.blocks()).isEqualTo(7);
    assertThat(verified.unverified()).isEqualTo(2);
    assertThat(ids.size()).isEqualTo(4);
  }

  private void unexpected(Damage damage) {
    throw new AssertionError(damage);
  }

  @Test
  void leavesLinksFoldersPipesAndForeignFilesAlone() throws Exception {
    BlockIds ids = filled(6, 5);
    Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
    Path moved = elsewhere.resolve("block");
    Files.move(file(ids, 0), moved);
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
    Files.copy(file(ids, 1), folder.resolve(ids.hex(1)));
    DirectorySummary found = summary();
    assertThat(found.blocks()).isEqualTo(4);
    assertThat(found.otherFiles()).isEqualTo(5);
    assertThat(found.faultyFiles()).isZero();
    Map<String, String> before = snapshot(elsewhere);
    assertThat(directories(directory).verify(MOVE, QUIET, this::unexpected).blocks()).isEqualTo(4);
    directories(directory).collect(new CollectPlan(0L, null, false), QUIET);
    assertThat(snapshot(elsewhere)).isEqualTo(before);
    assertThat(SmallSpace.blocks(folder)).as("link, folder, pipe, stray").hasSize(4);
  }

  @Test
  void findsEveryKindOfDamageAndChangesNothing() throws Exception {
    BlockIds ids = filled(7, 40);
    for (int i = 0; i < 40; i++) {
      SmallSpace.usedAt(file(ids, i), i);
    }
    damage(file(ids, 0), 5);
    damage(file(ids, 1), 8191);
    damage(file(ids, 2), 8192 + 20);
    Files.write(file(ids, 3), Arrays.copyOf(Files.readAllBytes(file(ids, 3)), 9000));
    Files.write(file(ids, 4), new byte[0]);
    Files.write(file(ids, 5), new byte[12288]);
    Files.copy(file(ids, 6), file(ids, 8), StandardCopyOption.REPLACE_EXISTING);
    Map<String, String> before = snapshot(directory);
    Map<String, String> reasons = new HashMap<>();
    List<Long> progress = new ArrayList<>();
    VerifyResult result =
        directories(directory)
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
    assertThat(summary().faultyFiles()).as("what stat sees without reading").isEqualTo(5);
    assertThat(snapshot(directory)).isEqualTo(before);
  }

  @Test
  void movesTheDamagedAsideWhenAsked() throws Exception {
    BlockIds ids = filled(8, 20);
    damage(file(ids, 4), 100);
    damage(file(ids, 5), 100);
    List<Damage> damages = new ArrayList<>();
    directories(directory).verify(MOVE, QUIET, damages::add);
    assertThat(damages).hasSize(2).allMatch(Damage::isMoved);
    DirectorySummary found = summary();
    assertThat(found.quarantinedFiles()).isEqualTo(2);
    assertThat(found.blocks()).isEqualTo(18);
    assertThat(directories(directory).verify(LOOK_ONLY, QUIET, this::unexpected).blocks())
        .isEqualTo(18);
  }

  @Test
  void saysWhatCannotBeRead() throws Exception {
    BlockIds ids = filled(9, 10);
    SickFiles files = new SickFiles();
    files.fail(file(ids, 2).getParent(), Errno.EACCES, "openUnnoticed"::equals);
    files.fail(file(ids, 3).getParent(), Errno.EACCES, "forEachName"::equals);
    StoreDirectories sick =
        PosixDirectories.of(
            StoreKind.POSIX,
            files.seam(),
            StoreConfig.of(Map.of("storage_backends", directory.toString())));
    List<Damage> damages = new ArrayList<>();
    VerifyResult result = sick.verify(MOVE, QUIET, damages::add);
    assertThat(result.unreadable()).isEqualTo(2);
    assertThat(result.blocks()).isEqualTo(8);
    assertThat(damages).hasSize(2).noneMatch(Damage::isDamaged).noneMatch(Damage::isMoved);
    DirectorySummary found = sick.summarize(QUIET).getFirst();
    assertThat(found.blocks()).isEqualTo(8);
    assertThat(found.notes()).singleElement().asString().contains("EACCES", "2 folders or files");
  }

  @Test
  void removesTheColdestOfSeveralDirectoriesWhateverTheirOrder() throws Exception {
    Path a = directory.resolve("a");
    Path b = directory.resolve("b");
    BlockIds ids =
        filled(10, 64, LAYOUT, Map.of("storage_backends", List.of(b.toString(), a.toString())));
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < 64; i++) {
      SmallSpace.usedAt(file(ids, i), (i * 37) % 64);
      if ((i * 37) % 64 >= 44) {
        expected.add(ids.hex(i));
      }
    }
    Map<String, String> before = snapshot(directory);
    CollectPlan dry = new CollectPlan(20 * FILE, null, true);
    CollectResult would = directories(a, b).collect(dry, QUIET);
    assertThat(would).isEqualTo(new CollectResult(64 * FILE, 20 * FILE, 44, 44 * FILE, 0, true));
    assertThat(snapshot(directory)).as("nothing is changed").isEqualTo(before);
    CollectPlan plan = new CollectPlan(20 * FILE, null, false);
    assertThat(directories(a, b).collect(plan, QUIET)).isEqualTo(would);
    assertThat(names()).isEqualTo(expected);
    CollectResult half = directories(a, b).collect(new CollectPlan(null, 0.5, false), QUIET);
    assertThat(half.removedBlocks()).isEqualTo(10);
  }

  private Set<String> names() throws IOException {
    Set<String> names = new TreeSet<>();
    SmallSpace.blocks(directory).forEach(path -> names.add(path.getFileName().toString()));
    return names;
  }

  @Test
  void removesLeavesBeforeRootsByWhatAnEngineNoted() throws Exception {
    BlockIds prompt = BlockBytes.ids(11, 16);
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      PosixStore store = stores.open(SmallSpace.room(1000, Map.of()));
      stores.dump(store, prompt);
      assertThat(store.lookupPrefix(prompt)).isEqualTo(15);
    }
    directories(directory).collect(new CollectPlan(6 * FILE, null, false), QUIET);
    Set<String> expected = new TreeSet<>();
    for (int i = 0; i < 6; i++) {
      expected.add(prompt.hex(i));
    }
    assertThat(names()).isEqualTo(expected);
  }

  @Test
  void collectsByTheConfiguredCapacity() throws Exception {
    filled(12, 64);
    Map<String, Object> settings = new HashMap<>();
    settings.put("posix_capacity_gb", (double) (80 * FILE) / SpaceLimit.GB);
    settings.put("posix_gc_recycle_percent", 0.25);
    StoreDirectories configured = directories(settings, directory);
    assertThat(configured.hasOwnLimit()).isTrue();
    CollectPlan plan = new CollectPlan(null, null, false);
    assertThat(configured.collect(plan, QUIET).removedBlocks()).isEqualTo(16);
    assertThat(configured.collect(plan, QUIET).removedBlocks()).as("48 of 80").isZero();
    settings.put("posix_gc_precise_mode", false);
    settings.put("posix_capacity_gb", (double) (40 * FILE) / SpaceLimit.GB);
    StoreDirectories sampled = directories(settings, directory);
    CollectResult would = sampled.collect(new CollectPlan(null, null, true), QUIET);
    CollectResult done = sampled.collect(plan, QUIET);
    assertThat(done.removedBlocks()).isBetween(20L, 48L);
    assertThat(would.removedBlocks()).isBetween(20L, 48L);
    assertThat(directories(directory).hasOwnLimit()).isFalse();
  }

  @Test
  void sparesALivingWriterClearsUpAfterADeadOneAndRespectsTheLease() throws Exception {
    Process process = CollectorProcess.start(directory);
    try (BufferedReader lines = process.inputReader()) {
      assertThat(lines.readLine()).isEqualTo("true");
      filled(13, 8);
      DirectorySummary living = summary();
      assertThat(living.livingTempFiles()).isEqualTo(1);
      assertThat(living.deadTempFiles()).isZero();
      assertThat(living.collector())
          .isEqualTo("process " + process.pid() + " on " + WriterClaim.host() + ", which lives");
      CollectPlan all = new CollectPlan(0L, null, false);
      assertThatThrownBy(() -> directories(directory).collect(all, QUIET))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("process " + process.pid());
      assertThat(names()).hasSize(8);
      process.destroyForcibly();
      assertThat(process.waitFor()).isEqualTo(137);
      assertThat(summary().deadTempFiles()).isEqualTo(1);
      assertThat(summary().collector()).isEqualTo("none");
      // One whose claim is gone as well.
      Path folder = file(BlockBytes.ids(13, 8), 0).getParent();
      Path orphan =
          folder.resolve(BlockBytes.ids(13, 8).hex(0) + ".host-1-0123456789abcdef-0000000001.tmp");
      Files.write(orphan, new byte[100]);
      // That of the original tells nothing of its writer.
      Path unknown = folder.resolve(BlockBytes.ids(13, 8).hex(0) + ".tmp");
      Files.write(unknown, new byte[100]);
      assertThat(summary().unknownTempFiles()).isEqualTo(1);
      CollectPlan dry = new CollectPlan(null, 1.0, true);
      assertThat(directories(directory).collect(dry, QUIET).removedTempFiles()).isEqualTo(2);
      assertThat(orphan).exists();
      CollectPlan keepAll = new CollectPlan(null, 1.0, false);
      CollectResult result = directories(directory).collect(keepAll, QUIET);
      assertThat(result.removedTempFiles()).isEqualTo(2);
      assertThat(result.removedBlocks()).isZero();
      assertThat(orphan).doesNotExist();
      assertThat(unknown).exists();
      assertThat(directory.resolve(".writers")).isEmptyDirectory();
    } finally {
      process.destroyForcibly();
    }
  }

  @Test
  void removesNothingOfAWriterThatLivesWithoutALease() throws Exception {
    try (TestStores stores = new TestStores(directory, LAYOUT)) {
      PosixStore store = stores.open();
      BlockIds ids = BlockBytes.ids(14, 4);
      stores.dumpShard(store, ids, 0).requireOk();
      assertThat(summary().livingTempFiles()).isEqualTo(4);
      CollectPlan all = new CollectPlan(0L, null, false);
      CollectResult result = directories(directory).collect(all, QUIET);
      assertThat(result.removedTempFiles()).isZero();
      assertThat(stores.temps()).hasSize(4);
      stores.dumpShard(store, ids, 1).requireOk();
      assertThat(stores.load(store, ids).ok()).isTrue();
    }
  }

  @Test
  void removedBlocksAreMissesForAStoreOfAnotherProcess() throws Exception {
    Process engine = EngineProcess.start(directory);
    try (BufferedReader lines = engine.inputReader()) {
      int missed = 0;
      while (missed < 3) {
        String line = lines.readLine();
        assertThat(line).as("the engine's next turn").startsWith("turn ");
        missed += line.endsWith(" missed") ? 1 : 0;
        directories(directory).collect(new CollectPlan(null, 0.5, false), QUIET);
        // What it writes is never damaged in the eyes of others.
        directories(directory).verify(MOVE, QUIET, this::unexpected);
        assertThat(summary().faultyFiles()).isZero();
      }
      engine.getOutputStream().close();
      assertThat(lines.lines().reduce((a, b) -> b)).hasValue("ended");
      assertThat(engine.waitFor()).isZero();
    } finally {
      engine.destroyForcibly();
    }
  }

  @Test
  void stopsWhenTold() throws Exception {
    filled(15, 50);
    Observer impatient =
        new Observer() {
          private volatile boolean stopped;

          @Override
          public void at(long done, long total) {
            stopped = true;
          }

          @Override
          public boolean isStopped() {
            return stopped;
          }
        };
    CollectPlan all = new CollectPlan(0L, null, false);
    CollectResult result = directories(directory).collect(all, impatient);
    assertThat(result.isComplete()).isFalse();
    assertThat(result.removedBlocks()).isEqualTo(1);
    assertThat(names()).hasSize(49);
    VerifyResult verified = directories(directory).verify(LOOK_ONLY, impatient, this::unexpected);
    assertThat(verified.isComplete()).isFalse();
  }
}

package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.testkit.BlockBytes;

/**
 * Writers killed at random moments, with requests on their rings: no wrong block, no lost one among those
 * reported durable, no file being written after the next starts. {@code -Ducm.kills=1000} kills more often
 * than the default.
 */
final class Ds3fsKillTest {

  private static final int KILLS = Integer.getInteger("ucm.kills", 6);
  private static final int STARTS = 100;

  @TempDir private Path mount;

  @Test
  void losesNothingDurableAndServesNothingWrongWhenKilled() throws Exception {
    long seed = Long.getLong("ucm.seed", System.nanoTime());
    Random random = new Random(seed);
    mount = mount.toRealPath();
    SimulatedHf3fs.load(mount);
    int kills = 0;
    int durable = 0;
    int found = 0;
    for (int round = 0; kills < KILLS; round++) {
      int writers = 1 + round % 2;
      boolean byLayer = round / 2 % 2 == 0;
      Path directory = Files.createDirectory(mount.resolve("round-" + round));
      String name = "round %d of seed %d, %d writers".formatted(round, seed, writers);
      NavigableSet<Integer> reported = round(directory, byLayer, round, writers, random, name);
      found += check(directory, round, reported, name);
      durable += reported.size();
      kills += writers;
    }
    System.out.printf(
        "%d kills: %d blocks reported durable, %d loaded, 0 lost, 0 wrong%n",
        kills, durable, found);
    assertThat(durable).as("blocks reported before the kills").isGreaterThan(KILLS);
  }

  /** Kills writers of the same blocks; returns what they had reported as durable. */
  private NavigableSet<Integer> round(
      Path directory, boolean byLayer, int blockSeed, int writers, Random random, String name)
      throws Exception {
    List<Process> processes = new ArrayList<>();
    List<CompletableFuture<List<Integer>>> reports = new ArrayList<>();
    for (int i = 0; i < writers; i++) {
      Process process = Ds3fsWriter.start(mount, directory, byLayer, blockSeed);
      int lines = 1 + random.nextInt(40);
      long spins = random.nextInt(2_000_000);
      processes.add(process);
      reports.add(CompletableFuture.supplyAsync(() -> killAfter(process, lines, spins)));
    }
    NavigableSet<Integer> durable = new TreeSet<>();
    for (int i = 0; i < writers; i++) {
      durable.addAll(reports.get(i).get());
      // 128 + SIGKILL: nothing else ended it.
      assertThat(processes.get(i).waitFor()).as(name).isEqualTo(137);
    }
    return durable;
  }

  /** Reads some lines, goes on for a moment of random length, kills, and reads the rest. */
  private static List<Integer> killAfter(Process process, int lines, long spins) {
    List<Integer> reported = new ArrayList<>();
    try (var reader = process.inputReader()) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        // A line without its end was cut off by the kill.
        if (line.endsWith(".")) {
          reported.add(Integer.parseInt(line.substring(0, line.length() - 1)));
        }
        if (reported.size() == lines) {
          for (long i = 0; i < spins; i++) {
            Thread.onSpinWait();
          }
          // Not through the process, which would close the pipe we read from.
          process.toHandle().destroyForcibly();
        }
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return reported;
  }

  /** Looks at what is left; returns how many blocks were there. */
  private static int check(
      Path directory, int blockSeed, NavigableSet<Integer> durable, String name) throws Exception {
    int found = 0;
    try (TestDs3fs stores = new TestDs3fs(directory, Ds3fsWriter.LAYOUT)) {
      Store store = stores.open(Map.of());
      int last = durable.isEmpty() ? 0 : durable.last();
      for (int block = 0; block <= last + 16; block++) {
        BlockIds id = Ds3fsWriter.id(blockSeed, block);
        boolean present = store.lookup(id).get(0);
        assertThat(present || !durable.contains(block)).as("block %d, %s", block, name).isTrue();
        // Compares every byte of what is loaded.
        assertThat(stores.load(store, id).ok()).as("block %d, %s", block, name).isEqualTo(present);
        found += present ? 1 : 0;
      }
      assertThat(stores.metrics.count("ds3fs_corrupt_blocks")).as(name).isZero();
    }
    // A store sweeps in the background, and stops when it is closed: some later one comes to the
    // end.
    for (int i = 0; !TestDs3fs.names(directory.resolve(Ds3fsFiles.TEMP_FOLDER)).isEmpty(); i++) {
      assertThat(i).as("starts that left files being written, %s", name).isLessThan(STARTS);
      try (TestDs3fs stores = new TestDs3fs(directory, Ds3fsWriter.LAYOUT)) {
        Store store = stores.open(Map.of());
        stores.load(store, BlockBytes.ids(-1, 1));
      }
    }
    return found;
  }
}

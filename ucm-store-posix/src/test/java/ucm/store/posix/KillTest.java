package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;

/**
 * Writers killed at random moments: no wrong block, no lost one among those reported durable, no
 * temporary file after the next start. {@code -Ducm.kills=1000} kills more often than the default.
 */
final class KillTest {

  private static final int KILLS = Integer.getInteger("ucm.kills", 100);
  private static final int MANY_BLOCKS = 100_000;

  @TempDir private Path parent;

  @Test
  void losesNothingDurableAndServesNothingWrongWhenKilled() throws Exception {
    long seed = Long.getLong("ucm.seed", System.nanoTime());
    Random random = new Random(seed);
    List<String> engines = engines();
    int kills = 0;
    int durable = 0;
    int checked = 0;
    for (int round = 0; kills < KILLS; round++) {
      String mode = (round % 2 == 0 ? "layers" : "whole") + engines.get(round / 2 % engines.size());
      int writers = 1 + round % 3;
      Path directory = Files.createDirectory(parent.resolve("round-" + round));
      String name = "round %d of seed %d, %s, %d writers".formatted(round, seed, mode, writers);
      NavigableSet<Integer> reported = round(directory, mode, round, writers, random, name);
      checked += check(directory, round, reported, name);
      durable += reported.size();
      kills += writers;
    }
    System.out.printf(
        "%d kills, engines%s: %d blocks reported durable, %d loaded, 0 lost, 0 wrong%n",
        kills, engines, durable, checked);
    assertThat(durable).as("blocks reported before the kills, seed %d", seed).isGreaterThan(KILLS);
  }

  /** What follows the way to dump: nothing for psync through the page cache, else the engine. */
  private List<String> engines() {
    List<String> engines = new ArrayList<>(List.of(""));
    if (DirectSupport.isThere(parent)) {
      engines.addAll(List.of(" psync", " aio"));
      if (DirectSupport.hasUring()) {
        engines.add(" io_uring");
      }
    }
    return engines;
  }

  /** Kills writers of the same blocks; returns what they had reported as durable. */
  private static NavigableSet<Integer> round(
      Path directory, String mode, int blockSeed, int writers, Random random, String name)
      throws Exception {
    List<Process> processes = new ArrayList<>();
    List<CompletableFuture<List<Integer>>> reports = new ArrayList<>();
    for (int i = 0; i < writers; i++) {
      Process process = WriterProcess.start(directory, mode, "fdatasync", blockSeed, MANY_BLOCKS);
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
    try (TestStores stores = new TestStores(directory, WriterProcess.LAYOUT)) {
      PosixStore store = stores.open();
      store.awaitSweep();
      assertThat(stores.temps()).as("temporary files, %s", name).isEmpty();
      assertThat(stores.in(".writers")).as("claims, %s", name).isEmpty();
      int found = 0;
      int last = durable.isEmpty() ? 0 : durable.last();
      for (int block = 0; block <= last + 16; block++) {
        BlockIds id = WriterProcess.id(blockSeed, block);
        boolean present = store.lookup(id).get(0);
        assertThat(present || !durable.contains(block)).as("block %d, %s", block, name).isTrue();
        // Compares every byte of what is loaded.
        assertThat(stores.load(store, id).ok()).as("block %d, %s", block, name).isEqualTo(present);
        found += present ? 1 : 0;
      }
      assertThat(stores.metrics.count("posix_corrupt_blocks")).as(name).isZero();
      return found;
    }
  }
}

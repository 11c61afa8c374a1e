package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;

/**
 * Writers of the same blocks killed at random moments: no wrong block, no lost one among those reported
 * durable, nothing half written after the next start. {@code -Ducm.kills=1000} kills more often.
 */
@Timeout(value = 30, unit = TimeUnit.MINUTES)
final class NfsKillTest {

  // The store of files has a larger matrix of its own; here it is about the tree.
  private static final int KILLS = Integer.getInteger("ucm.kills", 64) / 16;
  private static final int MANY = 10_000;

  @TempDir private Path parent;

  @Test
  void losesNothingDurableAndServesNothingWrongWhenKilled() throws Exception {
    long seed = Long.getLong("ucm.seed", System.nanoTime());
    Random random = new Random(seed);
    for (int round = 0; round * 2 < KILLS; round++) {
      Path directory = Files.createDirectory(parent.resolve("round-" + round));
      String name = "round %d of seed %d".formatted(round, seed);
      Set<Integer> durable = new TreeSet<>();
      List<Node> nodes = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        nodes.add(new Node(directory, "durability=fdatasync"));
        nodes.getLast().order("dump", round, MANY);
      }
      for (Node node : nodes) {
        try (node) {
          durable.addAll(killAfter(node, 1 + random.nextInt(20), random.nextInt(1_000_000)));
        }
      }
      check(directory, round, durable, name);
    }
  }

  private static Set<Integer> killAfter(Node node, int lines, int spins)
      throws InterruptedException {
    List<String> said = new ArrayList<>();
    for (int i = 0; i < lines; i++) {
      said.addAll(node.until("durable"));
    }
    for (int i = 0; i < spins; i++) {
      Thread.onSpinWait();
    }
    node.kill();
    said.addAll(node.rest());
    Set<Integer> durable = new TreeSet<>();
    for (String line : said) {
      // One that the kill cut off has no newline, and may be cut within its number.
      if (line.matches("durable [0-9]+\\.")) {
        durable.add(Integer.parseInt(line.substring(8, line.length() - 1)));
      }
    }
    return durable;
  }

  private static void check(Path directory, int seed, Set<Integer> durable, String name)
      throws Exception {
    try (TestNfs nfs = new TestNfs(directory)) {
      NfsStore store = nfs.open(Map.of());
      BlockIds ids = NodeProcess.ids(seed, MANY);
      int last = durable.stream().max(Integer::compare).orElse(0);
      for (int i = 0; i <= last + 8; i++) {
        BlockIds id = ids.slice(i, i + 1);
        boolean present = store.lookup(id).get(0);
        assertThat(present || !durable.contains(i)).as("block %d, %s", i, name).isTrue();
        // Compares every byte of what is loaded.
        assertThat(nfs.load(store, id).ok()).as("block %d, %s", i, name).isEqualTo(present);
      }
      TestNfs.awaitThat("nothing half written, " + name, () -> isClean(nfs));
      assertThat(nfs.metrics.count("nfs_corrupt_blocks")).as(name).isZero();
    }
  }

  private static boolean isClean(TestNfs nfs) {
    try {
      return nfs.temps().isEmpty() && nfs.files(".writers").isEmpty();
    } catch (UncheckedIOException | IOException e) {
      // It is just being removed.
      return false;
    }
  }
}

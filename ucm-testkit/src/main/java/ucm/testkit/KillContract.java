package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Task;
import ucm.testkit.TransferMemory.Placement;

/**
 * What a killed process leaves, for stores whose blocks outlive their process. The test of a
 * store extends this class; it needs a constructor without parameters, because the processes that are
 * killed make an object of it too.
 *
 * <p>Each round starts some processes that dump blocks into one fresh folder and say which ones {@link
 * Store#flush} and {@link Store#durable} call durable, kills them with SIGKILL at a random moment, then
 * opens the store in this process and demands: every block that was called durable is there, and what
 * is loaded has the right bytes. Rounds go through a matrix of how shards are dumped (whole blocks, layer
 * by layer), of {@link #variants} and of up to {@link #writers} processes at once.
 *
 * <p>{@code -Ducm.kills=1000} kills more often than {@link #kills} says; {@code -Ducm.seed} repeats the
 * moments of a run as far as a seed can: what the processes had done by then may differ.
 */
@Timeout(value = 30, unit = TimeUnit.MINUTES)
public abstract class KillContract {

  /** How the blocks of the rounds are cut: eight shards of four tensors, 128 KiB a block. */
  protected static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 16_384, 131_072);

  private static final int MOST_LINES = 40;
  private static final int MOST_SPINS = 2_000_000;
  private static final int BEYOND = 16;
  private static final int KILLED = 137;

  /** The folder of the folders of all rounds. */
  @TempDir protected Path parent;

  /** For subclasses. */
  protected KillContract() {}

  /** A fresh store, neither configured nor opened. */
  protected abstract Store newStore();

  /**
   * What the store is configured with besides the layout keys and {@code device_id: 0}.
   *
   * @param directory a folder of its own for each round
   */
  protected Map<String, Object> settings(Path directory) {
    return Map.of();
  }

  /** Further settings, of which each round takes the next: engines, say, or degrees of durability. */
  protected List<Map<String, Object>> variants() {
    return List.of(Map.of());
  }

  /** How many processes may keep the same blocks in one place at once. */
  protected int writers() {
    return 1;
  }

  /** How many processes are killed in all, at the least. */
  protected int kills() {
    return 12;
  }

  /** What the store is opened with in this process. */
  protected StoreContext context() {
    return StoreContext.of(null);
  }

  /**
   * Looks at what is left after a round, besides the blocks: temporary files, locks.
   *
   * @param store open, on what the round left
   */
  protected void checkLeftovers(Store store, Path directory) throws Exception {}

  @Test
  void losesNothingDurableAndServesNothingWrongWhenKilled() throws Exception {
    long seed = Long.getLong("ucm.seed", System.nanoTime());
    Random random = new Random(seed);
    int wanted = Integer.getInteger("ucm.kills", kills());
    int kills = 0;
    int durable = 0;
    for (int round = 0; kills < wanted; round++) {
      boolean layers = round % 2 == 0;
      int variant = round / 2 % variants().size();
      int writers = 1 + round % writers();
      String name =
          "round %d of seed %d, %s, %s, %d writers"
              .formatted(
                  round, seed, layers ? "layers" : "whole", variants().get(variant), writers);
      Path directory = Files.createDirectory(parent.resolve("round-" + round));
      NavigableSet<Integer> reported = new TreeSet<>();
      List<KillVictim> victims = new ArrayList<>();
      try {
        for (int i = 0; i < writers; i++) {
          victims.add(new KillVictim(getClass(), directory, layers, variant, round));
        }
        reported.addAll(killAll(victims, random, name));
      } finally {
        victims.forEach(victim -> victim.process.close());
      }
      check(directory, variant, round, reported, name);
      durable += reported.size();
      kills += writers;
    }
    assertThat(durable).as("blocks called durable before the kills, seed %d", seed).isPositive();
  }

  private static NavigableSet<Integer> killAll(List<KillVictim> victims, Random random, String name)
      throws Exception {
    List<CompletableFuture<List<Integer>>> reports = new ArrayList<>();
    for (KillVictim victim : victims) {
      int lines = 1 + random.nextInt(MOST_LINES);
      long spins = random.nextInt(MOST_SPINS);
      reports.add(CompletableFuture.supplyAsync(() -> victim.killAfter(lines, spins)));
    }
    NavigableSet<Integer> durable = new TreeSet<>();
    for (int i = 0; i < victims.size(); i++) {
      durable.addAll(reports.get(i).get());
      KillVictim victim = victims.get(i);
      assertThat(victim.process.exitCode())
          .as("ended by the kill and nothing else, %s; it said: %s", name, victim.said)
          .isEqualTo(KILLED);
    }
    return durable;
  }

  private void check(
      Path directory, int variant, int round, NavigableSet<Integer> durable, String name)
      throws Exception {
    try (Store store = configured(directory, variant)) {
      store.open(context());
      int last = durable.isEmpty() ? 0 : durable.last();
      for (int block = 0; block <= last + BEYOND; block++) {
        BlockIds id = id(round, block);
        boolean present = store.lookup(id).get(0);
        assertThat(present || !durable.contains(block))
            .as("block %d, called durable, is there: %s", block, name)
            .isTrue();
        TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, id);
        Task load = store.load(memory.transfer());
        assertThat(load.await(KillVictim.PATIENCE).ok())
            .as("load of block %d, %s", block, name)
            .isEqualTo(present);
        if (present) {
          memory.check();
        }
      }
      checkLeftovers(store, directory);
    }
  }

  /** A store of one variant, configured. */
  final Store configured(Path directory, int variant) {
    Map<String, Object> all = StoreFixture.workerKeys(LAYOUT);
    all.putAll(settings(directory));
    all.putAll(variants().get(variant));
    Store store = newStore();
    StoreContract.configure(store, all);
    return store;
  }

  /** The id of a block of a round. */
  static BlockIds id(int round, int block) {
    return BlockBytes.ids(round * 1_000_003L + block, 1);
  }
}

package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.reflect.Constructor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
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
      List<Victim> victims = new ArrayList<>();
      try {
        for (int i = 0; i < writers; i++) {
          victims.add(new Victim(getClass(), directory, layers, variant, round));
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

  private static NavigableSet<Integer> killAll(List<Victim> victims, Random random, String name)
      throws Exception {
    List<CompletableFuture<List<Integer>>> reports = new ArrayList<>();
    for (Victim victim : victims) {
      int lines = 1 + random.nextInt(MOST_LINES);
      long spins = random.nextInt(MOST_SPINS);
      reports.add(CompletableFuture.supplyAsync(() -> victim.killAfter(lines, spins)));
    }
    NavigableSet<Integer> durable = new TreeSet<>();
    for (int i = 0; i < victims.size(); i++) {
      durable.addAll(reports.get(i).get());
      Victim victim = victims.get(i);
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
        assertThat(load.await(Victim.PATIENCE).ok())
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

  static BlockIds id(int round, int block) {
    return BlockBytes.ids(round * 1_000_003L + block, 1);
  }

  /** A process that dumps blocks and says which are durable, until the contract kills it. */
  static final class Victim {

    static final Duration PATIENCE = Duration.ofSeconds(60);

    private static final int AT_ONCE = 4;

    final TestProcess process;

    /** What it said besides the numbers of blocks. */
    final StringBuilder said = new StringBuilder();

    Victim(
        Class<? extends KillContract> contract,
        Path directory,
        boolean layers,
        int variant,
        int round)
        throws IOException {
      process =
          new TestProcess(
              Victim.class,
              contract.getName(),
              directory.toString(),
              "" + layers,
              "" + variant,
              "" + round);
    }

    /**
     * Reads the numbers of some durable blocks, goes on for a moment, kills, and reads the rest.
     *
     * @return the numbers of all blocks that it called durable before it was dead
     */
    List<Integer> killAfter(int lines, long spins) {
      List<Integer> durable = new ArrayList<>();
      try {
        for (String line = process.line(); line != null; line = process.line()) {
          // The kill may cut a line off; numbers end with a dot.
          if (line.matches("\\d+\\.")) {
            durable.add(Integer.parseInt(line.substring(0, line.length() - 1)));
          } else {
            said.append(line).append('\n');
          }
          if (durable.size() == lines) {
            for (long i = 0; i < spins; i++) {
              Thread.onSpinWait();
            }
            process.sendKill();
          }
        }
      } catch (IOException e) {
        throw new AssertionError(e);
      }
      return durable;
    }

    public static void main(String[] args) throws Exception {
      Constructor<?> constructor = Class.forName(args[0]).getDeclaredConstructor();
      constructor.setAccessible(true);
      KillContract contract = (KillContract) constructor.newInstance();
      boolean layers = Boolean.parseBoolean(args[2]);
      int round = Integer.parseInt(args[4]);
      try (Store store = contract.configured(Path.of(args[1]), Integer.parseInt(args[3]))) {
        store.open(StoreContext.of(null));
        for (int first = 0; first >= 0; first += AT_ONCE) {
          dump(store, ids(round, first), layers);
          FlushResult flushed = store.flush(PATIENCE);
          StringBuilder report = new StringBuilder();
          for (int block = first; flushed.ok() && block < first + AT_ONCE; block++) {
            if (store.durable(id(round, block)).get(0)) {
              report.append(block).append(".\n");
            }
          }
          System.out.print(report);
          System.out.flush();
        }
      }
    }

    private static BlockIds ids(int round, int first) {
      return BlockIds.ofHex(
          IntStream.range(first, first + AT_ONCE)
              .mapToObj(block -> id(round, block).hex(0))
              .toList());
    }

    private static void dump(Store store, BlockIds ids, boolean layers) throws Exception {
      BlockLayout layout = LAYOUT;
      // A loop as fast as this one must not wait for the garbage collector to free its memory.
      try (Arena arena = Arena.ofShared()) {
        if (!layers) {
          end(store, TransferMemory.ofBlocks(layout, Placement.SCATTERED, ids, arena));
          return;
        }
        int[] shards = new int[ids.size()];
        for (int shard = 0; shard < layout.shardCount(); shard++) {
          Arrays.fill(shards, shard);
          end(store, new TransferMemory(layout, Placement.SCATTERED, ids, shards, arena));
        }
      }
    }

    private static void end(Store store, TransferMemory memory) throws Exception {
      store.dump(memory.fill().transfer()).await(PATIENCE).requireOk();
    }
  }
}

package ucm.testkit;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.reflect.Constructor;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.testkit.TransferMemory.Placement;

/** A process that dumps blocks and says which are durable, until {@link KillContract} kills it. */
final class KillVictim {

  static final Duration PATIENCE = Duration.ofSeconds(60);

  private static final int AT_ONCE = 4;

  final TestProcess process;

  /** What it said besides the numbers of blocks. */
  final StringBuilder said = new StringBuilder();

  KillVictim(
      Class<? extends KillContract> contract,
      Path directory,
      boolean layers,
      int variant,
      int round)
      throws IOException {
    process =
        new TestProcess(
            KillVictim.class,
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
          if (store.durable(KillContract.id(round, block)).get(0)) {
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
            .mapToObj(block -> KillContract.id(round, block).hex(0))
            .toList());
  }

  private static void dump(Store store, BlockIds ids, boolean layers) throws Exception {
    BlockLayout layout = KillContract.LAYOUT;
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

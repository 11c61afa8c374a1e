package ucm.store.posix;

import java.io.IOException;
import java.nio.file.Path;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.TransferResult;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * A process of its own that dumps blocks and loads them again, over and over, until its input ends.
 * Each turn is a line, which says whether a block that was dumped had gone. It fails when anything but
 * that happens to a load, or a wrong byte is loaded.
 */
final class EngineProcess {

  private static final int BLOCKS = 32;

  private EngineProcess() {}

  static Process start(Path directory) throws IOException {
    return WriterProcess.start(EngineProcess.class, directory.toString());
  }

  public static void main(String[] args) throws Exception {
    try (TestStores stores = new TestStores(Path.of(args[0]), SmallSpace.LAYOUT)) {
      PosixStore store = stores.open();
      BlockIds ids = BlockBytes.ids(60, BLOCKS);
      // Once for all turns: what the collector of garbage frees it frees too late for a loop.
      TransferMemory source =
          TransferMemory.ofBlocks(SmallSpace.LAYOUT, Placement.SCATTERED, ids).fill();
      TransferMemory target = TransferMemory.ofBlocks(SmallSpace.LAYOUT, Placement.SCATTERED, ids);
      Thread input = Thread.ofPlatform().start(EngineProcess::awaitEnd);
      for (int turn = 0; input.isAlive(); turn++) {
        TestStores.ended(store.dump(source.transfer())).requireOk();
        System.out.println("turn " + turn + (turn(store, target, ids) ? " missed" : ""));
        System.out.flush();
      }
    }
    System.out.println("ended");
    System.out.flush();
  }

  private static void awaitEnd() {
    try {
      while (System.in.read() >= 0) {
        // Whoever started it says nothing.
      }
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Looks up and loads; whether something had gone. */
  private static boolean turn(PosixStore store, TransferMemory target, BlockIds ids)
      throws Exception {
    boolean missed = false;
    for (int i = 0; i < 20; i++) {
      store.lookupPrefix(ids);
      TransferResult result = TestStores.load(store, target.scribble());
      for (int shard = 0; shard < 2 * ids.size(); shard++) {
        ShardOutcome outcome = result.outcome(shard);
        if (outcome != ShardOutcome.OK && outcome != ShardOutcome.MISSING) {
          throw new AssertionError(outcome + " " + result.cause());
        }
        missed |= outcome == ShardOutcome.MISSING;
      }
    }
    return missed;
  }
}

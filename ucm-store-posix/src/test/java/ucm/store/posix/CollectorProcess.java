package ucm.store.posix;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.testkit.BlockBytes;

/**
 * A process of its own that opens a store with a capacity, begins a block, makes a round, says whether
 * it is the one that collects, and waits to be killed.
 */
final class CollectorProcess {

  /** The block of which it dumps the first shard. */
  static final BlockIds BEGUN = BlockBytes.ids(77, 1);

  private CollectorProcess() {}

  static Process start(Path directory) throws Exception {
    return WriterProcess.start(CollectorProcess.class, directory.toString());
  }

  public static void main(String[] args) throws Exception {
    try (TestStores stores = new TestStores(Path.of(args[0]), SmallSpace.LAYOUT)) {
      PosixStore store = stores.open(SmallSpace.room(100, Map.of("timeout_ms", 600_000)));
      stores.dumpShard(store, BEGUN, 0).requireOk();
      store.keeper().awaitFirstRound();
      System.out.println(store.keeper().holdsLease());
      System.out.flush();
      // Whoever started it never writes; when that process dies, this one ends.
      int end = System.in.read();
      System.out.println(end);
    }
  }
}

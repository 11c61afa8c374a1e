package ucm.store.cache;

import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.api.Task;
import ucm.store.common.SharedFile;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/**
 * A process that shares a buffer, does one thing, says {@code done} and stays as it is until it is
 * killed. What it does: {@code load} a block that its backend never brings, {@code dump} blocks that its
 * backend never takes, {@code lock} a stripe, or {@code make} a segment and never finish it.
 */
final class SharedVictim {

  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private SharedVictim() {}

  /** Arguments: what to do, the unique_id, and how many blocks the buffer holds. */
  public static void main(String[] arguments) throws Exception {
    String what = arguments[0];
    String uniqueId = arguments[1];
    if (what.equals("make")) {
      SharedFile file = SharedFile.create(SegmentFolder.DEV_SHM.segment(uniqueId));
      if (file == null || !file.tryLock(SegmentLayout.GATE_LOCK)) {
        throw new IllegalStateException("somebody else made it");
      }
      file.allocate(1 << 20);
      stay();
    }
    int frames = Integer.parseInt(arguments[2]);
    HeldBackend backend = new HeldBackend();
    TestCache cache =
        new TestCache(
            SharedPeerTest.LAYOUT, backend, 0, SharedPeerTest.settings(uniqueId, frames, 60_000));
    BlockIds ids = BlockBytes.ids(1, frames);
    switch (what) {
      case "load" -> {
        Task _ = cache.store.load(memory(ids.slice(0, 1)).transfer());
        HeldBackend.Held _ = backend.nextLoad();
      }
      case "dump" -> cache.store.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
      case "lock" -> {
        StripeLock lock = Objects.requireNonNull(cache.opened().shared()).stripeLock(0);
        int _ = lock.lock();
      }
      default -> throw new IllegalArgumentException(what);
    }
    stay();
  }

  private static void stay() throws InterruptedException {
    System.out.println("done");
    System.out.flush();
    boolean _ = new CountDownLatch(1).await(10, TimeUnit.MINUTES);
  }

  private static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(SharedPeerTest.LAYOUT, Placement.SCATTERED, ids);
  }
}

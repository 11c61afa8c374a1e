package ucm.server;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.MemoryStore;

/** Keeps blocks in memory; a look-up or a dump hangs when a test says so. */
@StoreName("Hanging")
public final class HangingStore extends ForwardingStore {

  /** A call that hangs until it is closed. */
  static final class Hang implements AutoCloseable {

    private final CountDownLatch reached = new CountDownLatch(1);
    private final CountDownLatch ended = new CountDownLatch(1);

    void awaitReached() throws InterruptedException {
      reached.await();
    }

    private void hang() {
      reached.countDown();
      try {
        ended.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void close() {
      ended.countDown();
    }
  }

  private static final AtomicReference<@Nullable Hang> LOOKUP = new AtomicReference<>();
  private static final AtomicReference<@Nullable Hang> DUMP = new AtomicReference<>();

  private final Store memory = new MemoryStore();

  /** The next look-up hangs. */
  static Hang nextLookup() {
    Hang hang = new Hang();
    LOOKUP.set(hang);
    return hang;
  }

  /** The next dump hangs. */
  static Hang nextDump() {
    Hang hang = new Hang();
    DUMP.set(hang);
    return hang;
  }

  @Override
  protected Store inner() {
    return memory;
  }

  @Override
  public String name() {
    return "Hanging";
  }

  private static void hangIfTold(AtomicReference<@Nullable Hang> next) {
    Hang hang = next.getAndSet(null);
    if (hang != null) {
      hang.hang();
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    hangIfTold(LOOKUP);
    return super.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    hangIfTold(LOOKUP);
    return super.lookupPrefix(ids);
  }

  @Override
  public Task dump(Transfer transfer) {
    hangIfTold(DUMP);
    return super.dump(transfer);
  }
}

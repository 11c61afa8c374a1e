package ucm.server;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
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

  /** Calls that hang until it is closed. */
  static final class Hang implements AutoCloseable {

    private final AtomicInteger left;
    private final CountDownLatch reached;
    private final CountDownLatch ended = new CountDownLatch(1);

    private Hang(int calls) {
      left = new AtomicInteger(calls);
      reached = new CountDownLatch(calls);
    }

    void awaitReached() throws InterruptedException {
      reached.await();
    }

    private void hang() {
      if (left.getAndDecrement() <= 0) {
        return;
      }
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
    Hang hang = new Hang(1);
    LOOKUP.set(hang);
    return hang;
  }

  /** The next dumps hang. */
  static Hang nextDumps(int count) {
    Hang hang = new Hang(count);
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
    Hang hang = next.get();
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

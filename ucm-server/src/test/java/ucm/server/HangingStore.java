package ucm.server;

import java.util.BitSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.MemoryStore;

/** Keeps blocks in memory; a look-up hangs when a test says so. */
@StoreName("Hanging")
public final class HangingStore extends ForwardingStore {

  /** A look-up that hangs until it is closed. */
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

  private static final AtomicReference<@Nullable Hang> NEXT = new AtomicReference<>();

  private final Store memory = new MemoryStore();

  /** The next look-up hangs. */
  static Hang next() {
    Hang hang = new Hang();
    NEXT.set(hang);
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

  private static void hangIfTold() {
    Hang hang = NEXT.getAndSet(null);
    if (hang != null) {
      hang.hang();
    }
  }

  @Override
  public BitSet lookup(BlockIds ids) {
    hangIfTold();
    return super.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    hangIfTold();
    return super.lookupPrefix(ids);
  }
}

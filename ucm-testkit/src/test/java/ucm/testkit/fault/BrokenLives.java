package ucm.testkit.fault;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.testkit.fault.MemoryStore.Volume;

/** Stores that are configured, opened, flushed or closed wrongly. */
final class BrokenLives {

  private BrokenLives() {}

  static final class AnswersAfterClose extends BrokenStore {
    @Override
    public BitSet durable(BlockIds ids) {
      try {
        return super.durable(ids);
      } catch (StoreClosedException e) {
        return new BitSet();
      }
    }
  }

  static final class OpensWithoutAWord extends BrokenStore {
    private boolean configured;
    private boolean opened;

    @Override
    public void configure(StoreConfig config) {
      super.configure(config);
      configured = true;
    }

    @Override
    public void open(StoreContext context) {
      if (configured && !opened) {
        opened = true;
        super.open(context);
      }
    }
  }

  static final class ThrowsAtABadValue extends BrokenStore {
    @Override
    public void configure(StoreConfig config) {
      super.configure(config);
      if (config.hasErrors()) {
        throw new StoreException(config.problems().getFirst().toString());
      }
    }
  }

  static final class StopsAtTheFirstBadValue extends BrokenStore {
    @Override
    public void configure(StoreConfig config) {
      for (ConfigKey<?> key : configKeys()) {
        if (!config.hasErrors()) {
          config.get(key);
        }
      }
      if (!config.hasErrors()) {
        super.configure(config);
      }
    }
  }

  static final class DeclaresAKeyItDoesNotRead extends BrokenStore {
    @Override
    public List<ConfigKey<?>> configKeys() {
      List<ConfigKey<?>> keys = new ArrayList<>(super.configKeys());
      keys.add(CommonKeys.TIMEOUT_MS);
      return keys;
    }
  }

  /** Its threads end when the latch is opened, so that they outlive no test run. */
  static class LeavesAThread extends BrokenStore {
    static final Queue<CountDownLatch> LATCHES = new ConcurrentLinkedQueue<>();

    @Override
    public void open(StoreContext context) {
      super.open(context);
      start();
    }

    static void start() {
      CountDownLatch latch = new CountDownLatch(1);
      LATCHES.add(latch);
      Thread.ofPlatform()
          .daemon()
          .name("ucm-broken-left-0")
          .start(
              () -> {
                try {
                  latch.await();
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
              });
    }
  }

  static final class StartsAThreadWhenConfigured extends BrokenStore {
    @Override
    public void configure(StoreConfig config) {
      super.configure(config);
      LeavesAThread.start();
    }
  }

  static class Role extends BrokenStore {
    boolean scheduler;

    @Override
    public void configure(StoreConfig config) {
      super.configure(config);
      scheduler = config.get(CommonKeys.DEVICE_ID) < 0;
    }
  }

  static final class MovesAsScheduler extends Role {
    @Override
    public Task load(Transfer transfer) {
      return scheduler ? endedWell(transfer) : super.load(transfer);
    }
  }

  static final class BlindAsScheduler extends Role {
    @Override
    public BitSet lookup(BlockIds ids) {
      return scheduler ? new BitSet() : super.lookup(ids);
    }
  }

  /** Not even an interrupt ends its close. */
  static final class DeadlocksInClose extends BrokenStore {
    private final CountDownLatch end = new CountDownLatch(1);

    DeadlocksInClose() {
      LeavesAThread.LATCHES.add(end);
    }

    @Override
    public void close() {
      while (end.getCount() > 0) {
        LockSupport.parkNanos(1_000_000);
        var _ = Thread.interrupted();
      }
    }
  }

  static final class Forgets extends BrokenStore {
    @Override
    BrokenStore on(Volume newVolume) {
      return this;
    }
  }

  static final class LosesWhatWasNotFlushed extends BrokenStore {
    private volatile boolean flushed;

    @Override
    public FlushResult flush(Duration timeout) throws InterruptedException {
      flushed = true;
      return super.flush(timeout);
    }

    @Override
    public void close() {
      super.close();
      for (Transfer dump : dumps) {
        for (int shard = 0; shard < dump.shardCount() && !flushed; shard++) {
          volume.remove(dump.ids(), shard);
        }
      }
    }
  }

  static final class HidesWhatIsPending extends BrokenStore {
    @Override
    public FlushResult flush(Duration timeout) throws InterruptedException {
      super.flush(Duration.ZERO);
      return FlushResult.clean();
    }
  }

  static final class OffersTooLittle extends BrokenStore {
    @Override
    public MemoryRegion offerMemory(long byteSize) {
      return MemoryRegion.device(0, 4096, byteSize - 1);
    }
  }
}

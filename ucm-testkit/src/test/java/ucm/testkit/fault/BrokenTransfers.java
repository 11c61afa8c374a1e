package ucm.testkit.fault;

import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Exchanger;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.MemoryRegion;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/** Stores that move bytes wrongly. */
final class BrokenTransfers {

  private BrokenTransfers() {}

  static final class MovesNothing extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      return endedWell(transfer);
    }
  }

  static final class SpoilsTheLastByte extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      Task task = super.load(transfer);
      spoil(transfer, transfer.shardCount() - 1, 0);
      return task;
    }
  }

  static final class WritesAByteTooMany extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      Task task = super.load(transfer);
      spoil(transfer, transfer.shardCount() - 1, 1);
      return task;
    }
  }

  static final class ChangesWhatIsDumped extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      Task task = super.dump(transfer);
      spoil(transfer, 0, 0);
      return task;
    }
  }

  static final class WritesLate extends BrokenStore {
    @Override
    public void close() {
      for (Transfer ended : loads) {
        spoil(ended, 0, 0);
      }
      super.close();
    }
  }

  static final class ReadsLate extends BrokenStore {
    private final Queue<Transfer> waiting = new ConcurrentLinkedQueue<>();

    @Override
    public Task dump(Transfer transfer) {
      drain();
      waiting.add(part(transfer, ShardListener.NONE, shard -> true));
      return endedWell(transfer);
    }

    @Override
    public FlushResult flush(Duration timeout) throws InterruptedException {
      drain();
      return super.flush(timeout);
    }

    private void drain() {
      for (Transfer late = waiting.poll(); late != null; late = waiting.poll()) {
        inner.dump(late).result().requireOk();
      }
    }
  }

  static final class LosesAShard extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      int last = transfer.shardCount() - 1;
      inner
          .dump(part(transfer, ShardListener.NONE, shard -> last < 5 || shard < last))
          .result()
          .requireOk();
      return endedWell(transfer);
    }
  }

  static final class Overwrites extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        volume.remove(transfer.ids(), shard);
      }
      return super.dump(transfer);
    }
  }

  static final class MissesAllWhenOneIsMissing extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      TransferResult result =
          inner.load(part(transfer, ShardListener.NONE, shard -> true)).result();
      TransferTask task = new TransferTask(1, transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        task.end(shard, result.ok() ? ShardOutcome.OK : ShardOutcome.MISSING, null);
      }
      return task;
    }
  }

  static final class FailsWhatIsMissing extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      TransferResult result =
          inner.load(part(transfer, ShardListener.NONE, shard -> true)).result();
      TransferTask task = new TransferTask(1, transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        boolean ok = result.outcome(shard) == ShardOutcome.OK;
        task.end(shard, ok ? ShardOutcome.OK : ShardOutcome.FAILED, null);
      }
      return task;
    }
  }

  static final class TakesAnyLayout extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      try {
        return super.dump(transfer);
      } catch (StoreException e) {
        return endedWell(transfer);
      }
    }
  }

  /** Two callers that dump at the same time dump each other's bytes. */
  static final class MixesWriters extends BrokenStore {
    private final Exchanger<Transfer> meeting = new Exchanger<>();

    @Override
    public Task dump(Transfer transfer) {
      Transfer other = transfer;
      try {
        other = meeting.exchange(transfer, 20, TimeUnit.MILLISECONDS);
      } catch (TimeoutException alone) {
        return super.dump(transfer);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      BlockIds ids = transfer.ids();
      MemoryRegion theirs = other.region(0, 0);
      Transfer.Builder mixed = Transfer.packed(transfer.layout());
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        mixed.shard(ids, shard, transfer.shardIndex(shard)).piece(theirs, other.offset(0, 0));
      }
      inner.dump(mixed.build()).result().requireOk();
      return endedWell(transfer);
    }
  }
}

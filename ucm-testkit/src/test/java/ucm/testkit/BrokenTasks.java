package ucm.testkit;

import java.util.ArrayList;
import java.util.List;
import ucm.api.CommonKeys;
import ucm.api.ShardListener;
import ucm.api.ShardOutcome;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.testkit.fault.BrokenStore;

/** Stores whose tasks and listeners are wrong. */
public final class BrokenTasks {

  private BrokenTasks() {}

  public static final class NeverEndsALoadThatMisses extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      Transfer part = part(transfer, ShardListener.NONE, shard -> true);
      return inner.load(part).result().ok() ? inner.load(transfer) : new TransferTask(1, transfer);
    }
  }

  public static final class NeverEndsATransferOfNothing extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      TransferMemory some =
          TransferMemory.ofBlocks(
              transfer.layout(), TransferMemory.Placement.PACKED, BlockBytes.ids(1, 1));
      return transfer.shardCount() == 0
          ? new TransferTask(1, some.transfer())
          : super.load(transfer);
    }
  }

  public static final class TellsNoListener extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      return inner.dump(part(transfer, ShardListener.NONE, shard -> true));
    }
  }

  public static final class TellsTheListenerTwice extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      Task task = super.load(transfer);
      transfer.listener().shardEnded(transfer, 0, task.result().outcome(0));
      return task;
    }
  }

  public static final class TellsTheListenerEarly extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        transfer.listener().shardEnded(transfer, shard, ShardOutcome.OK);
      }
      return inner.load(part(transfer, ShardListener.NONE, shard -> true));
    }
  }

  public static final class TellsOfAnotherTransfer extends BrokenStore {
    @Override
    public Task dump(Transfer transfer) {
      ShardListener told = transfer.listener();
      return inner.dump(
          part(
              transfer,
              (part, shard, outcome) -> told.shardEnded(part, shard, outcome),
              s -> true));
    }
  }

  public static final class NumbersAllTasksAlike extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      TransferTask task = new TransferTask(1, transfer);
      for (int shard = 0; shard < transfer.shardCount(); shard++) {
        task.end(shard, ShardOutcome.MISSING, null);
      }
      return task;
    }
  }

  public static final class LeavesTasksOpen extends BrokenStore {
    @Override
    public Task load(Transfer transfer) {
      super.lookup(transfer.ids());
      return new TransferTask(1, transfer);
    }
  }

  public static final class HangsWhenItsQueueIsShort extends BrokenStore {
    private boolean isShort;

    @Override
    public List<ConfigKey<?>> configKeys() {
      List<ConfigKey<?>> keys = new ArrayList<>(super.configKeys());
      keys.add(CommonKeys.WAITING_QUEUE_DEPTH);
      return keys;
    }

    @Override
    public void configure(StoreConfig config) {
      super.configure(config);
      isShort = config.get(CommonKeys.WAITING_QUEUE_DEPTH) == 1;
    }

    @Override
    public Task load(Transfer transfer) {
      return isShort ? new TransferTask(1, transfer) : super.load(transfer);
    }
  }
}

package ucm.store.file.transfer;

import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.store.file.health.DirectoryHealth;

/** Moves shards only where the directory is not down, and tells its breaker how that went. */
public final class CircuitBreakingMover implements ShardMover {

  private final ShardMover mover;
  private final DirectoryHealth health;

  public CircuitBreakingMover(ShardMover mover, DirectoryHealth health) {
    this.mover = mover;
    this.health = health;
  }

  @Override
  public void move(TransferJob job, int from, int to) {
    int directory = health.directoryOf(job.transfer.ids().high(from), job.transfer.ids().low(from));
    health.enter(directory);
    StoreException refusal = health.refusal(directory);
    RuntimeException fault = null;
    try {
      if (refusal == null) {
        mover.move(job, from, to);
      } else {
        refuse(job, from, to, refusal);
      }
    } catch (RuntimeException e) {
      fault = e;
      throw e;
    } finally {
      health.leave(directory, refusal == null, fault);
    }
  }

  private void refuse(TransferJob job, int from, int to, StoreException why) {
    health.refused(job.isDump, to - from);
    mover.notMoved(job, from, why);
    for (int i = from; i < to; i++) {
      job.task.end(i, ShardOutcome.REFUSED, why);
    }
  }

  @Override
  public void notMoved(TransferJob job, int from, RuntimeException cause) {
    mover.notMoved(job, from, cause);
  }
}

package ucm.testkit.fault;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;

/**
 * One transfer through a {@link FaultyStore}: the shards with a planned outcome end as planned, the
 * others are handed on in a transfer of their own and end as that one's.
 */
final class FaultyTransfer {

  /** Closed until it has ended, or was refused. */
  final CountDownLatch left = new CountDownLatch(1);

  private final TransferTask task;
  private final Transfer transfer;
  private final @Nullable ShardOutcome[] planned;
  // What is known of shards that have not ended yet.
  private final @Nullable ShardOutcome[] held;
  private final StoreException fault;
  private final @Nullable Random order;

  /**
   * Plans a transfer.
   *
   * @param planned for each shard how it ends, or null when it is handed on
   * @param fault the cause of what is planned
   * @param order draws the order in which shards end; null when they end as they come
   */
  FaultyTransfer(
      TransferTask task,
      @Nullable ShardOutcome[] planned,
      StoreException fault,
      @Nullable Random order) {
    this.task = task;
    this.transfer = task.transfer();
    this.planned = planned;
    this.held = planned.clone();
    this.fault = fault;
    this.order = order;
  }

  TransferTask task() {
    return task;
  }

  /**
   * Hands on what is to be handed on.
   *
   * @throws RuntimeException what the next store throws; no shard has ended then
   */
  void start(Function<Transfer, Task> innerCall) {
    int[] handedOn =
        IntStream.range(0, planned.length).filter(shard -> planned[shard] == null).toArray();
    if (handedOn.length == 0) {
      endHeld(null);
      return;
    }
    Task inner =
        innerCall.apply(
            transfer.select(
                handedOn,
                (part, i, outcome) -> {
                  if (order == null && outcome == ShardOutcome.OK) {
                    task.ok(handedOn[i]);
                  } else {
                    // Its cause is known, and others may overtake it, when all have ended.
                    held[handedOn[i]] = outcome;
                  }
                }));
    inner.whenTerminal(() -> endHeld(inner.result()));
  }

  /** Ends every shard alike, none having been started. */
  void endAll(ShardOutcome outcome, Throwable cause) {
    for (int shard = 0; shard < planned.length; shard++) {
      task.end(shard, outcome, cause);
    }
  }

  private void endHeld(@Nullable TransferResult inner) {
    Throwable cause = inner == null ? null : inner.cause();
    for (int shard : ending()) {
      ShardOutcome outcome = held[shard];
      if (outcome == null) {
        continue;
      }
      if (planned[shard] == null) {
        task.end(shard, outcome, outcome == ShardOutcome.OK ? null : cause);
      } else {
        task.end(shard, outcome, outcome == ShardOutcome.FAILED ? fault : null);
      }
    }
  }

  private List<Integer> ending() {
    List<Integer> shards = new ArrayList<>(IntStream.range(0, planned.length).boxed().toList());
    if (order != null) {
      Collections.shuffle(shards, order);
    }
    return shards;
  }
}

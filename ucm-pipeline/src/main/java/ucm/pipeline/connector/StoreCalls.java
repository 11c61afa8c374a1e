package ucm.pipeline.connector;

import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.StoreTimeoutException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.pipeline.connector.statistics.ConnectorFaults;
import ucm.platform.fault.RecentFaults;

/**
 * Loads and dumps of a worker, with a store's failures turned into blocks that were not moved.
 * Thread-safe.
 *
 * @param store null in lite mode, which moves nothing
 * @param patience after how long a wait is worth a line in the log
 */
public record StoreCalls(@Nullable Store store, Duration patience, ConnectorFaults faults) {

  /** Starts a load; null when the store refuses it. */
  public @Nullable Task load(Transfer transfer) {
    return load(() -> opened().load(transfer));
  }

  /** Starts a load in another way; null when the store refuses it, or has none to start. */
  public <T extends Task> @Nullable T load(Supplier<? extends @Nullable T> call) {
    return submit("a load was refused, so its blocks are computed", call);
  }

  /** Starts a dump; null when the store refuses it. */
  public @Nullable Task dump(Transfer transfer) {
    return submit(
        "a dump was refused, so its blocks are not stored", () -> opened().dump(transfer));
  }

  private Store opened() {
    if (store == null) {
      throw new StoreException("lite mode moves nothing");
    }
    return store;
  }

  private <T> @Nullable T submit(String refused, Supplier<? extends @Nullable T> call) {
    try {
      return call.get();
    } catch (RuntimeException e) {
      faults.record(refused, e);
      return null;
    }
  }

  /**
   * Waits until a task has completed, however long that takes: until then the store may touch the
   * memory, so the engine must not go on. Stores end their tasks at their deadline; only one whose I/O
   * hangs in the kernel does not, and a Cache above it does.
   *
   * @param what {@code load} or {@code dump}, for the log
   * @return how each shard ended
   */
  public TransferResult await(String what, Task task) throws InterruptedException {
    while (true) {
      try {
        TransferResult result = task.await(patience);
        if (!result.ok()) {
          faults.record(
              "a " + what + " ended with " + result, what + RecentFaults.kind(result.cause()));
        }
        return result;
      } catch (StoreTimeoutException e) {
        faults.record("still waiting for a " + what + ", whose memory is in use", e);
      }
    }
  }
}

package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.TransferTask;

/**
 * What a store's {@code flush} knows of its dumps. Thread-safe, and of use while the store closes.
 *
 * @param settled told of a dump of which all shards are with the next stage, or failed, or needed no move
 * @param failed told of a block that will not become durable, and why, or null
 * @param untold told of what the next flush is to tell, as a flush that found it does not
 * @param settling waits until the dumps accepted so far are settled; gives the blocks of those that are
 *     not
 * @param takeFailures gives the failures since the last flush, which are forgotten by this
 */
public record Dumps(
    Consumer<TransferTask> settled,
    Failed failed,
    Consumer<FlushResult> untold,
    Settling settling,
    Supplier<FlushResult> takeFailures) {

  /** Is told of a block by its id. */
  public interface Failed {
    void tell(long high, long low, @Nullable Throwable fault);
  }

  /** Waits, for some time. */
  public interface Settling {
    Set<BlockIds> await(Duration timeout) throws InterruptedException;
  }
}

package ucm.store.cache.transfer;

import java.time.Duration;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.TransferTask;

/** What a store's {@code flush} knows of its dumps. Thread-safe, and of use while the store closes. */
public interface Dumps {

  /** All shards of a dump are with the next stage, or failed, or needed no move. */
  void settled(TransferTask dump);

  /**
   * A block will not become durable.
   *
   * @param fault why, or null
   */
  void failed(long high, long low, @Nullable Throwable fault);

  /** The next flush tells what one found that does not tell its caller. */
  void failed(FlushResult untold);

  /**
   * Waits until the dumps accepted so far are settled.
   *
   * @return the blocks of those that are not
   */
  Set<BlockIds> await(Duration timeout) throws InterruptedException;

  /** The failures since the last flush, which are forgotten by this. */
  FlushResult takeFailures();
}

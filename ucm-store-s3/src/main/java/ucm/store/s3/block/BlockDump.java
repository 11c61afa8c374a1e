package ucm.store.s3.block;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;
import ucm.api.TransferTask;

/**
 * Stores a block of which a transfer has all shards, from where they lie.
 *
 * @param from the first of them in the transfer
 * @param stored told when the block is there
 */
public record BlockDump(Bucket bucket, TransferTask task, int from, int count, Runnable stored) {

  /** Waits for its turn. */
  public void start() {
    bucket.window().add(() -> bucket.workers().execute(this::put));
  }

  private void put() {
    int begun = 0;
    while (begun < count && task.begin(from + begun)) {
      begun++;
    }
    if (begun < count) {
      // The task is past its deadline.
      end(begun, ShardOutcome.EXPIRED, null);
      return;
    }
    try {
      new BlockPut(
              bucket,
              body(task.transfer()),
              task.deadlineNanos(),
              bucket.known().removals(),
              (outcome, fault) -> {
                if (outcome == ShardOutcome.OK) {
                  stored.run();
                }
                end(count, outcome, fault);
              })
          .send();
    } catch (RuntimeException e) {
      end(count, ShardOutcome.FAILED, new StoreException("S3 did not read a block to store", e));
    }
  }

  private ObjectBody body(Transfer transfer) {
    int segments = transfer.pieceCount();
    MemorySegment[] pieces = new MemorySegment[count * segments];
    int[] crcs = new int[count];
    CRC32C crc = new CRC32C();
    for (int i = from; i < from + count; i++) {
      int index = transfer.shardIndex(i);
      crc.reset();
      for (int piece = 0; piece < segments; piece++) {
        MemorySegment bytes = transfer.segment(i, piece);
        crc.update(bytes.asByteBuffer());
        pieces[index * segments + piece] = bytes;
      }
      crcs[index] = (int) crc.getValue();
    }
    BlockIds id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    return new ObjectBody(bucket.format(), id, Arrays.asList(pieces), crcs);
  }

  private void end(int shards, ShardOutcome outcome, @Nullable StoreException fault) {
    try {
      for (int i = from; i < from + shards; i++) {
        task.end(i, outcome, fault);
      }
    } finally {
      bucket.window().ended(false);
    }
  }
}

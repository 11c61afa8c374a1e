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

/** Stores a block of which a transfer has all shards, from where they lie. */
public final class BlockDump implements RequestWindow.Sent {

  private final Moves moves;
  private final TransferTask task;
  private final Transfer transfer;
  private final int from;
  private final int count;
  private final BlockIds id;
  private final Runnable stored;

  /**
   * Stores shards {@code from} to {@code from + count} of a transfer, which are those of a block.
   *
   * @param stored told when the block is there
   */
  public BlockDump(Moves moves, TransferTask task, int from, int count, Runnable stored) {
    this.moves = moves;
    this.task = task;
    this.transfer = task.transfer();
    this.from = from;
    this.count = count;
    this.id = BlockIds.of(transfer.ids().high(from), transfer.ids().low(from));
    this.stored = stored;
  }

  /** Waits for its turn. */
  public void start() {
    moves.window().add(this);
  }

  @Override
  public void send() {
    moves.workers().execute(this::put);
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
              moves,
              body(),
              task.deadlineNanos(),
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

  private ObjectBody body() {
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
    return new ObjectBody(moves.format(), id, Arrays.asList(pieces), crcs);
  }

  private void end(int shards, ShardOutcome outcome, @Nullable StoreException fault) {
    try {
      for (int i = from; i < from + shards; i++) {
        task.end(i, outcome, fault);
      }
    } finally {
      moves.window().ended(false);
    }
  }
}

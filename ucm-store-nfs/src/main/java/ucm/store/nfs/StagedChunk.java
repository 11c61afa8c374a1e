package ucm.store.nfs;

import org.jspecify.annotations.Nullable;
import ucm.api.ShardListener;
import ucm.api.Transfer;
import ucm.platform.device.DeviceBatch;
import ucm.platform.device.DeviceCopies;

/**
 * Some neighbouring shards of a {@link StagedTransfer} that have a slot each, and that files take or give in
 * one transfer.
 */
abstract class StagedChunk extends DeviceBatch {

  /** In place of a slot that was given back. */
  static final int NONE = -1;

  private static final int MAX_RUN = 32;
  private static final long MAX_RUN_BYTES = 1 << 20;

  final Staging staging;
  final StagedTransfer staged;
  final int first;
  final int[] slots;

  private final int run;

  /**
   * Takes over slots.
   *
   * @param first the first shard of the transfer that is in it
   * @param slots the slot of each shard
   * @param ready how many can be copied at once
   */
  StagedChunk(Staging staging, StagedTransfer staged, int first, int[] slots, int ready) {
    super(ready);
    this.staging = staging;
    this.staged = staged;
    this.first = first;
    this.slots = slots;
    this.run = Math.clamp(MAX_RUN_BYTES / staged.transfer.layout().shardSize(), 1, MAX_RUN);
  }

  /** Begins with it. Does not block, and does not throw. */
  abstract void start();

  @Override
  protected final int run() {
    return run;
  }

  @Override
  protected final long event() {
    return staged.transfer.event();
  }

  /** Which shard of the chunk is the one that arrived as the n-th. */
  abstract int shardAt(int n);

  /** Gives the slot of a shard of the chunk back. */
  final void release(int i) {
    staging.buffers().release(slots[i]);
    slots[i] = NONE;
  }

  /** Keeps the slot of a shard back for ever, as a copy may still come into it. */
  final void lose(int i) {
    slots[i] = NONE;
  }

  /** The transfer between the slots that are left and the files; null when none is. */
  final @Nullable Transfer inHost(Transfer.Builder builder) {
    Transfer whole = staged.transfer;
    boolean any = false;
    for (int i = 0; i < slots.length; i++) {
      if (slots[i] != NONE) {
        builder.shard(whole.ids(), first + i, whole.shardIndex(first + i));
        builder.piece(staging.buffers().region(slots[i]), staging.buffers().offset(slots[i]));
        any = true;
      }
    }
    return any ? builder.build(listener()) : null;
  }

  /** Receives the shards that files have taken or given. */
  abstract ShardListener listener();

  /** Queues the copy of one shard of the chunk. */
  abstract void queue(DeviceCopies copies, int i);

  @Override
  protected final void queue(DeviceCopies copies, int from, int to) {
    for (int n = from; n < to; n++) {
      int i = shardAt(n);
      if (slots[i] != NONE) {
        queue(copies, i);
      }
    }
  }
}

package ucm.store.valkey;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.function.LongSupplier;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.ShardOutcome;
import ucm.api.TransferTask;

/**
 * One shard on its way: the value that the client sends, or the place its answer goes to. The value is
 * the shard's bytes and their CRC32C.
 *
 * <p>The client may still want to send or to answer after the deadline, when the memory is the caller's
 * again. So the bytes are touched under this object's lock, and not any more when the shard has ended.
 */
final class ShardMove {

  static final int CRC_BYTES = 4;

  private final TransferTask task;
  private final int shard;
  private final String key;
  private final LongSupplier clock;
  // Guarded by this.
  private boolean ended;
  private ShardOutcome loaded = ShardOutcome.MISSING;

  /** A move that has not begun, of a block that the server has under a key. */
  ShardMove(TransferTask task, int shard, String key, LongSupplier clock) {
    this.task = task;
    this.shard = shard;
    this.key = key;
    this.clock = clock;
  }

  /** Whether it may be sent; false when its time was over before. */
  boolean begin() {
    return task.begin(shard);
  }

  String key() {
    return key;
  }

  boolean isLoad() {
    return !task.isDump();
  }

  int shardIndex() {
    return task.transfer().shardIndex(shard);
  }

  long nanosLeft() {
    return task.deadlineNanos() - clock.getAsLong();
  }

  int valueSize() {
    return Math.toIntExact(task.transfer().layout().shardSize() + CRC_BYTES);
  }

  /** Copies the shard from the caller's memory into the client's buffer, on a thread of the client. */
  synchronized void writeTo(ByteBuf target) {
    if (ended) {
      throw new IllegalStateException("the shard has ended, its memory is not to be read any more");
    }
    CRC32C crc = new CRC32C();
    for (int segment = 0; segment < task.transfer().pieceCount(); segment++) {
      ByteBuffer bytes = memory(segment).asByteBuffer();
      target.writeBytes(bytes.duplicate());
      crc.update(bytes);
    }
    target.writeInt((int) crc.getValue());
  }

  /** Copies an answer from the client's buffer into the caller's memory, on a thread of the client. */
  synchronized void readFrom(ByteBuffer value) {
    if (ended) {
      return;
    }
    if (value.remaining() != valueSize()) {
      loaded = ShardOutcome.CORRUPT;
      return;
    }
    int size = value.remaining() - CRC_BYTES;
    CRC32C crc = new CRC32C();
    crc.update(value.slice(value.position(), size));
    if ((int) crc.getValue() != value.getInt(value.position() + size)) {
      loaded = ShardOutcome.CORRUPT;
      return;
    }
    MemorySegment from = MemorySegment.ofBuffer(value);
    long at = 0;
    for (int segment = 0; segment < task.transfer().pieceCount(); segment++) {
      MemorySegment to = memory(segment);
      MemorySegment.copy(
          from, ValueLayout.JAVA_BYTE, at, to, ValueLayout.JAVA_BYTE, 0, to.byteSize());
      at += to.byteSize();
    }
    loaded = ShardOutcome.OK;
  }

  /** What became of a load that was answered. */
  synchronized ShardOutcome loaded() {
    return loaded;
  }

  void end(ShardOutcome outcome, @Nullable Throwable fault) {
    synchronized (this) {
      ended = true;
    }
    task.end(shard, outcome, fault);
  }

  private MemorySegment memory(int segment) {
    return task.transfer().segment(shard, segment);
  }
}

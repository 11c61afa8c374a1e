package ucm.store.file.block;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.libc.IoVector;
import ucm.platform.memory.MemoryCrc;

/**
 * Walks through the memory of neighbouring shards of a transfer: in steps, each of which is one vectored
 * call, or by bytes. A step is small enough that its bytes stay in a cache between the call and the
 * checksum, and covers bytes that follow one another in the file. Hot path: allocates nothing. Not
 * thread-safe.
 */
final class ShardCursor {

  /** Most entries of a step; two are left for the gap and the footer after the last shard. */
  static final int STEP_ENTRIES = IoVector.MAX_ENTRIES - 2;

  private @Nullable Transfer transfer;
  private int end;
  private int shard;
  private int segment;
  private long inSegment;
  private long inShard;

  /**
   * Starts over.
   *
   * @param from first shard of the transfer, inclusive
   * @param to last shard, exclusive
   */
  void begin(Transfer of, int from, int to) {
    transfer = of;
    end = to;
    shard = from;
    segment = 0;
    inSegment = 0;
    inShard = 0;
  }

  /** Drops the transfer. */
  void clear() {
    transfer = null;
  }

  /** Whether there is another step. */
  boolean hasNext() {
    return shard < end;
  }

  /** The shard it is at, of which some bytes may be behind it. */
  int shard() {
    return shard;
  }

  /** Where in the file it is. */
  long fileOffset() {
    Transfer of = Objects.requireNonNull(transfer);
    return of.shardIndex(shard) * of.layout().shardSize() + inShard;
  }

  /**
   * Goes on by a step and puts its memory into {@code vector}.
   *
   * @param most bytes of the step
   * @param toWrite whether the memory will be written
   */
  void next(IoVector vector, long most, boolean toWrite) {
    Transfer of = Objects.requireNonNull(transfer);
    vector.clear();
    long left = most;
    while (left > 0 && vector.size() < STEP_ENTRIES) {
      long length = Math.min(left, of.pieceSize(segment) - inSegment);
      MemoryRegion region = of.region(shard, segment);
      long at = of.offset(shard, segment) + inSegment;
      if (toWrite) {
        vector.addToWrite(region, at, length);
      } else {
        vector.add(region, at, length);
      }
      left -= length;
      boolean endsShard = pass(of, length);
      if (endsShard && (shard == end || of.shardIndex(shard) != of.shardIndex(shard - 1) + 1)) {
        return;
      }
    }
  }

  /**
   * Goes on by some bytes and takes their checksum.
   *
   * @param crc of the bytes of the shard it is at, or null when no checksum is wanted
   * @param crcs gets the checksum of each shard that it leaves, at its index less {@code base}
   */
  void digest(long bytes, @Nullable MemoryCrc crc, int[] crcs, int base) {
    Transfer of = Objects.requireNonNull(transfer);
    long left = bytes;
    while (left > 0) {
      long length = Math.min(left, of.pieceSize(segment) - inSegment);
      if (crc != null) {
        if (inShard == 0) {
          crc.reset();
        }
        crc.update(of.region(shard, segment), of.offset(shard, segment) + inSegment, length);
      }
      left -= length;
      if (pass(of, length) && crc != null) {
        crcs[shard - 1 - base] = crc.value();
      }
    }
  }

  /** Goes on within a segment; true when that ends a shard. */
  private boolean pass(Transfer of, long length) {
    inSegment += length;
    inShard += length;
    if (inSegment < of.pieceSize(segment)) {
      return false;
    }
    inSegment = 0;
    if (++segment < of.pieceCount()) {
      return false;
    }
    segment = 0;
    inShard = 0;
    shard++;
    return true;
  }
}

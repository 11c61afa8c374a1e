package ucm.store.file.block;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.libc.IoVector;
import ucm.platform.memory.MemoryCrc;

/**
 * Walks through the memory of neighbouring shards of a transfer in steps, each of which is one
 * vectored call. A step is small enough that its bytes stay in a cache between the
 * call and the checksum, and covers bytes that follow one another in the file. Hot path: allocates
 * nothing. Not thread-safe.
 */
final class ShardCursor {

  /** Most entries of a step; two are left for the gap and the footer after the last shard. */
  static final int STEP_ENTRIES = IoVector.MAX_ENTRIES - 2;

  private @Nullable Transfer transfer;
  private int first;
  private int end;
  private int shard;
  private int segment;
  private long inSegment;
  private long inShard;
  private int stepShard;
  private int stepSegment;
  private long stepInSegment;
  private long stepInShard;

  /**
   * Starts over.
   *
   * @param from first shard of the transfer, inclusive
   * @param to last shard, exclusive
   */
  void begin(Transfer transfer, int from, int to) {
    this.transfer = transfer;
    first = from;
    end = to;
    shard = from;
    segment = 0;
    inSegment = 0;
    inShard = 0;
  }

  /** Becomes a copy of another, at the same step. */
  void copy(ShardCursor of) {
    transfer = of.transfer;
    first = of.first;
    end = of.end;
    shard = of.shard;
    segment = of.segment;
    inSegment = of.inSegment;
    inShard = of.inShard;
    stepShard = of.stepShard;
    stepSegment = of.stepSegment;
    stepInSegment = of.stepInSegment;
    stepInShard = of.stepInShard;
  }

  /** Drops the transfer. */
  void clear() {
    transfer = null;
  }

  /** Whether there is another step. */
  boolean hasNext() {
    return shard < end;
  }

  /**
   * Goes on to the next step and puts its memory into {@code vector}.
   *
   * @param most bytes of the step
   * @param toWrite whether the memory will be written
   */
  void next(IoVector vector, int most, boolean toWrite) {
    Transfer of = Objects.requireNonNull(transfer);
    vector.clear();
    stepShard = shard;
    stepSegment = segment;
    stepInSegment = inSegment;
    stepInShard = inShard;
    long left = most;
    while (left > 0 && vector.size() < STEP_ENTRIES) {
      long size = of.pieceSize(segment);
      long length = Math.min(left, size - inSegment);
      MemoryRegion region = of.region(shard, segment);
      long at = of.offset(shard, segment) + inSegment;
      if (toWrite) {
        vector.addToWrite(region, at, length);
      } else {
        vector.add(region, at, length);
      }
      left -= length;
      inSegment += length;
      inShard += length;
      if (inSegment == size && nextSegment(of)) {
        break;
      }
    }
  }

  /** Goes on to the next segment; true when the step must end there. */
  private boolean nextSegment(Transfer of) {
    inSegment = 0;
    if (++segment < of.pieceCount()) {
      return false;
    }
    segment = 0;
    inShard = 0;
    shard++;
    return shard == end || of.shardIndex(shard) != of.shardIndex(shard - 1) + 1;
  }

  /** Where the step starts in the file. */
  long fileOffset() {
    Transfer of = Objects.requireNonNull(transfer);
    return of.shardIndex(stepShard) * of.layout().shardSize() + stepInShard;
  }

  /** The shard it began with. */
  int firstOfAll() {
    return first;
  }

  /** The first shard that has bytes in the step. */
  int firstShard() {
    return stepShard;
  }

  /** The first shard that is not complete with the step. */
  int firstOpenShard() {
    return shard;
  }

  /**
   * Takes the step's bytes into the checksum.
   *
   * @param crcs gets the checksum of each shard that is complete with the step, at its index less
   *     {@code base}
   */
  void digest(MemoryCrc crc, int[] crcs, int base) {
    Transfer of = Objects.requireNonNull(transfer);
    int atShard = stepShard;
    int atSegment = stepSegment;
    long at = stepInSegment;
    while (atShard < shard || (atShard == shard && (atSegment < segment || at < inSegment))) {
      if (atSegment == 0 && at == 0) {
        crc.reset();
      }
      boolean partly = atShard == shard && atSegment == segment;
      long to = partly ? inSegment : of.pieceSize(atSegment);
      MemoryRegion region = of.region(atShard, atSegment);
      crc.update(region, of.offset(atShard, atSegment) + at, to - at);
      if (partly) {
        return;
      }
      at = 0;
      if (++atSegment == of.pieceCount()) {
        crcs[atShard - base] = crc.value();
        atSegment = 0;
        atShard++;
      }
    }
  }
}

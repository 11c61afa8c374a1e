package ucm.store.file.block;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.libc.IoVector;
import ucm.platform.memory.MemoryDigest;

/**
 * Walks through the memory of neighbouring shards of a transfer in steps, each of which is one
 * vectored call. A step is small enough that its bytes stay in a cache between the
 * call and the checksum, and covers bytes that follow one another in the file. Hot path: allocates
 * nothing. Not thread-safe.
 */
final class ShardCursor {

  /** Most entries of a step; two are left for the gap and the footer behind the last shard. */
  static final int STEP_ENTRIES = IoVector.MAX_ENTRIES - 2;

  private @Nullable Transfer transfer;
  private int first;
  private int end;
  private int shard;
  private int piece;
  private long inPiece;
  private long inShard;
  private int stepShard;
  private int stepPiece;
  private long stepInPiece;
  private long stepInShard;

  /**
   * Starts anew.
   *
   * @param from first shard of the transfer, inclusive
   * @param to last shard, exclusive
   */
  void begin(Transfer transfer, int from, int to) {
    this.transfer = transfer;
    first = from;
    end = to;
    shard = from;
    piece = 0;
    inPiece = 0;
    inShard = 0;
  }

  /** Becomes a copy of another, at the same step. */
  void copy(ShardCursor of) {
    transfer = of.transfer;
    first = of.first;
    end = of.end;
    shard = of.shard;
    piece = of.piece;
    inPiece = of.inPiece;
    inShard = of.inShard;
    stepShard = of.stepShard;
    stepPiece = of.stepPiece;
    stepInPiece = of.stepInPiece;
    stepInShard = of.stepInShard;
  }

  /** Lets go of the transfer. */
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
   */
  void next(IoVector vector, int most) {
    Transfer of = Objects.requireNonNull(transfer);
    vector.clear();
    stepShard = shard;
    stepPiece = piece;
    stepInPiece = inPiece;
    stepInShard = inShard;
    long room = most;
    while (room > 0 && vector.size() < STEP_ENTRIES) {
      long size = of.pieceSize(piece);
      long length = Math.min(room, size - inPiece);
      vector.add(of.region(shard, piece), of.offset(shard, piece) + inPiece, length);
      room -= length;
      inPiece += length;
      inShard += length;
      if (inPiece == size && nextPiece(of)) {
        break;
      }
    }
  }

  /** Goes on to the next piece; true when the step must end there. */
  private boolean nextPiece(Transfer of) {
    inPiece = 0;
    if (++piece < of.pieceCount()) {
      return false;
    }
    piece = 0;
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
  void digest(MemoryDigest crc, int[] crcs, int base) {
    Transfer of = Objects.requireNonNull(transfer);
    int atShard = stepShard;
    int atPiece = stepPiece;
    long at = stepInPiece;
    while (atShard < shard || (atShard == shard && (atPiece < piece || at < inPiece))) {
      if (atPiece == 0 && at == 0) {
        crc.reset();
      }
      boolean partly = atShard == shard && atPiece == piece;
      long to = partly ? inPiece : of.pieceSize(atPiece);
      MemoryRegion region = of.region(atShard, atPiece);
      crc.update(region, of.offset(atShard, atPiece) + at, to - at);
      if (partly) {
        return;
      }
      at = 0;
      if (++atPiece == of.pieceCount()) {
        crcs[atShard - base] = crc.value();
        atPiece = 0;
        atShard++;
      }
    }
  }
}

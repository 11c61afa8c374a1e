package ucm.store.ds3fs;

import org.jspecify.annotations.Nullable;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;

/**
 * A vector of memory to be read or written, in rounds of several parts, each of which is one request to
 * 3FS. A part is either a stretch of memory that 3FS maps anyway, or several neighbours that are copied
 * through staging memory. Made once and used over and over by its {@link RingMover}.
 */
final class RingRequest {

  /** Most parts of a round. */
  static final int MAX_PARTS = 64;

  /** In place of an offset in the staging memory: the part is not copied. */
  static final long NOT_STAGED = -1;

  final int number;
  final RingMover mover;

  // The parts of the round.
  final long[] lengths = new long[MAX_PARTS];
  final long[] addresses = new long[MAX_PARTS];
  final long[] staged = new long[MAX_PARTS];
  final long[] results = new long[MAX_PARTS];
  int parts;

  // What is left to be moved; null when it is no longer waited for.
  @Nullable IoVector memory;
  @Nullable NativePath path;
  int fd;
  // Where in the file the round starts, in bytes.
  long offset;
  // Bytes moved by earlier rounds.
  long moved;
  // Requests to 3FS that have not ended, and one while more of them are being made.
  int underWay;
  // Its offset in the staging memory, or -1.
  int slot = -1;
  // Some part names memory of the caller.
  boolean isDirect;
  boolean isDone;
  // When to give up, by System.nanoTime.
  long deadlineNanos;
  // What failed first, or null.
  @Nullable String failedCall;
  int errno;

  RingRequest(RingMover mover, int number) {
    this.mover = mover;
    this.number = number;
  }

  void begin(int file, NativePath name, IoVector vector, long at, long deadline) {
    fd = file;
    path = name;
    memory = vector;
    offset = at;
    deadlineNanos = deadline;
    parts = 0;
    moved = 0;
    underWay = 0;
    isDirect = false;
    isDone = vector.byteSize() == 0;
    failedCall = null;
    errno = 0;
  }

  void addPart(long address, long length, long stagedAt) {
    addresses[parts] = address;
    lengths[parts] = length;
    staged[parts] = stagedAt;
    results[parts] = 0;
    parts++;
  }

  /** Records a failure; the first one counts. */
  void fail(String call, int error) {
    if (failedCall == null) {
      failedCall = call;
      errno = error;
    }
  }

  /** Drops what the caller handed in. */
  void clear() {
    memory = null;
    path = null;
  }
}

package ucm.store.file.block;

import ucm.platform.libc.IoVector;

/** A request of a worker: what it moves, and where in its transfer that is. */
final class IoStep {

  final IoVector vector = new IoVector();

  /** Has gone on to this step and no further. */
  final ShardCursor cursor = new ShardCursor();

  /** Where in the file it starts, in bytes. */
  long offset;

  /** Bytes to move. */
  long wanted;

  /** Bytes moved, once it was awaited. */
  long moved;
}

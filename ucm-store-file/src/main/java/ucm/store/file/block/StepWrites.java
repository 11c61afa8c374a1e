package ucm.store.file.block;

import ucm.platform.io.IoQueue;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockFooter;

/**
 * Writes shards to a file step by step, takes their checksums, and keeps as many steps under way as
 * the engine takes. Hot path: allocates nothing. Not thread-safe.
 */
final class StepWrites {

  private final IoQueue queue;
  private final IoStep[] steps;

  StepWrites(IoQueue queue, IoStep[] steps) {
    this.queue = queue;
    this.steps = steps;
  }

  /** Writes all shards of a block, and its footer after them. */
  void writeBlock(
      int fd, NativePath path, IoScratch scratch, BlockFooter format, long idHigh, long idLow) {
    int started = 0;
    try {
      ShardCursor cursor = scratch.cursor;
      while (cursor.hasNext()) {
        IoStep step = nextStep(started, scratch);
        if (!cursor.hasNext()) {
          scratch.addFooter(format, idHigh, idLow, scratch.crcs, step.vector);
        }
        queue.write(fd, path, step.vector, step.offset);
        started++;
      }
      awaitLast(started);
    } finally {
      queue.drain();
    }
  }

  /** Writes the shards that the cursor of {@code scratch} begins with. */
  void writeShards(int fd, NativePath path, IoScratch scratch) {
    int started = 0;
    try {
      while (scratch.cursor.hasNext()) {
        IoStep step = nextStep(started, scratch);
        queue.write(fd, path, step.vector, step.offset);
        started++;
      }
      awaitLast(started);
    } finally {
      queue.drain();
    }
  }

  /** Writes the footer of a block whose shards are all there. */
  void writeFooter(
      int fd,
      NativePath path,
      IoScratch scratch,
      BlockFooter format,
      long idHigh,
      long idLow,
      int[] crcs) {
    IoVector vector = scratch.vector().clear();
    scratch.addFooter(format, idHigh, idLow, crcs, vector);
    try {
      queue.write(fd, path, vector, format.layout().blockSize());
      queue.await();
    } finally {
      queue.drain();
    }
  }

  private IoStep nextStep(int started, IoScratch scratch) {
    if (started >= steps.length) {
      queue.await();
    }
    IoStep step = steps[started % steps.length];
    ShardCursor cursor = scratch.cursor;
    cursor.next(step.vector, queue.writeBytes(), false);
    cursor.digest(scratch.crc, scratch.crcs, cursor.firstOfAll());
    step.offset = cursor.fileOffset();
    return step;
  }

  private void awaitLast(int started) {
    for (int i = Math.min(started, steps.length); i > 0; i--) {
      queue.await();
    }
  }
}

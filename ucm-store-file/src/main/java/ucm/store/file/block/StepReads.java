package ucm.store.file.block;

import ucm.platform.io.IoQueue;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockFooter;

/**
 * Reads shards of one file step by step, and keeps as many steps under way as the engine takes. Hot
 * path: allocates nothing. Not thread-safe.
 */
final class StepReads {

  /** Where the footer is read. */
  enum Footer {
    /** In a step of its own before all others. */
    FIRST,
    /** Along with the last bytes of the shards. */
    LAST,
    NOT
  }

  private final IoQueue queue;
  private final IoStep[] steps;
  private int started;
  private int awaited;

  /**
   * Reads by a queue.
   *
   * @param steps as many as may be under way
   */
  StepReads(IoQueue queue, IoStep[] steps) {
    this.queue = queue;
    this.steps = steps;
  }

  /** Starts over, for the shards that the cursor of {@code scratch} begins with. */
  void begin() {
    started = 0;
    awaited = 0;
  }

  /** Whether there is another step to wait for. */
  boolean hasNext(IoScratch scratch, Footer footer) {
    return awaited < started || hasMore(scratch, footer);
  }

  /**
   * Starts the steps that fit in after the next one, then waits for that one.
   *
   * @return the step; its slot is used again by the next call
   */
  IoStep next(int fd, IoScratch scratch, BlockFooter format, Footer footer) {
    NativePath path = scratch.block;
    while (started - awaited < steps.length && hasMore(scratch, footer)) {
      IoStep step = steps[started % steps.length];
      prepare(step, scratch, format, footer);
      step.wanted = step.vector.byteSize();
      queue.read(fd, path, step.vector, step.offset);
      started++;
    }
    IoStep oldest = steps[awaited % steps.length];
    oldest.moved = queue.await();
    awaited++;
    return oldest;
  }

  /** Most bytes of a step. */
  int stepBytes() {
    return queue.readBytes();
  }

  private boolean hasMore(IoScratch scratch, Footer footer) {
    return (started == 0 && footer == Footer.FIRST) || scratch.cursor.hasNext();
  }

  private void prepare(IoStep step, IoScratch scratch, BlockFooter format, Footer footer) {
    if (started == 0 && footer == Footer.FIRST) {
      step.vector.clear().add(scratch.footer.segment());
      step.offset = format.offset();
      return;
    }
    ShardCursor cursor = scratch.cursor;
    cursor.next(step.vector, stepBytes(), true);
    step.cursor.copy(cursor);
    step.offset = cursor.fileOffset();
    if (!cursor.hasNext() && footer == Footer.LAST) {
      scratch.addFooterSegment(format, step.vector);
    }
  }
}

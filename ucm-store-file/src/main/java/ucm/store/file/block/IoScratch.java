package ucm.store.file.block;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import ucm.platform.io.IoQueue;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.memory.MemoryCrc;
import ucm.store.file.format.BlockFooter;

/** What one worker thread needs to move shards, made once and used over and over. */
public final class IoScratch {

  final NativePath block = new NativePath();
  final NativePath temp = new NativePath();
  final NativePath folder = new NativePath();
  final ShardCursor cursor = new ShardCursor();
  final MemoryCrc crc = new MemoryCrc();
  final int[] crcs;

  /** The checksums in the footer. */
  final int[] storedCrcs;

  final BlockFooter.Buffer footer;

  /** The engine of the worker. */
  final IoQueue queue;

  final StepReads reads;
  final StepWrites writes;

  private final IoStep[] steps;

  /** What is read from, or written to, the bytes between a block and its footer. */
  final MemorySegment gap;

  /** The block being read. */
  long idHigh;

  /** Its last eight bytes. */
  long idLow;

  /** What {@link BlockFiles#removals} said before its file was opened. */
  long removals;

  /** What is wrong with the file of the block being read, or null. */
  @Nullable String fault;

  /** Groups of shards seen so far, for checking a sample of them. */
  int groups;

  public IoScratch(BlockFooter format, IoQueue queue) {
    this.queue = queue;
    steps = new IoStep[queue.depth()];
    Arrays.setAll(steps, i -> new IoStep());
    reads = new StepReads(queue, steps);
    writes = new StepWrites(queue, steps);
    crcs = new int[format.layout().shardCount()];
    storedCrcs = new int[crcs.length];
    footer = format.newBuffer();
    gap = Arena.ofAuto().allocate(Math.max(1, format.gap()));
  }

  /** A vector for a single request; only while no step is under way. */
  IoVector vector() {
    return steps[0].vector;
  }

  /** Drops the transfer. */
  void clear() {
    cursor.clear();
    for (IoStep step : steps) {
      step.cursor.clear();
    }
  }

  /** Adds to a vector what follows a block: zeros up to the footer, and the footer. */
  void addFooter(BlockFooter format, long idHigh, long idLow, int[] shardCrcs, IoVector vector) {
    format.write(footer, idHigh, idLow, shardCrcs);
    gap.fill((byte) 0);
    addFooterSegment(format, vector);
  }

  /** Adds to a vector the memory for what follows a block, to be read. */
  void addFooterSegment(BlockFooter format, IoVector vector) {
    if (format.gap() > 0) {
      vector.add(gap);
    }
    vector.add(footer.segment());
  }
}

package ucm.store.file.block;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.platform.io.IoQueue;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.memory.MemoryCrc;
import ucm.store.file.format.BlockFooter;

/**
 * What one worker thread needs to move the shards of one file after another: it reads or writes step by
 * step, keeps as many steps under way as the engine takes, and takes checksums in between. Hot path:
 * allocates nothing. Not thread-safe.
 */
public final class ShardIo {

  /** Most entries of a step; two are left for the gap and the footer after the last shard. */
  static final int STEP_ENTRIES = IoVector.MAX_ENTRIES - 2;

  /** Where the footer is read. */
  enum Footer {
    /** In a step of its own before all others. */
    FIRST,
    /** Along with the last bytes of the shards. */
    LAST,
    NOT
  }

  /** A request. */
  static final class Step {

    private final IoVector vector = new IoVector();

    /** Bytes of shards in it. */
    private long shardBytes;

    /** Whether it reads the footer, too. */
    boolean hasFooter;

    /** Where in the file it starts, in bytes. */
    long offset;

    /** Bytes to move. */
    long wanted;

    /** Bytes moved, once it was awaited. */
    long moved;
  }

  final NativePath block = new NativePath();
  final NativePath temp = new NativePath();
  final NativePath folder = new NativePath();
  final BlockFooter.Buffer footer;

  /** The checksum of each shard that was moved, counted from the first one of its group. */
  final int[] crcs;

  /** The checksums in the footer of the block being read. */
  final int[] storedCrcs;

  /** The block being moved. */
  long idHigh;

  /** Its last eight bytes. */
  long idLow;

  /** What {@link KnownBlocks#stamp} said before its file was opened. */
  long stamp;

  /** Groups of shards seen so far, for checking a sample of them. */
  int groups;

  private final BlockFooter format;
  private final IoQueue queue;
  private final Step[] steps;
  // What is read from, or written to, the bytes between a block and its footer.
  private final MemorySegment gap;
  private final MemoryCrc crc = new MemoryCrc();
  // Ahead by the steps that are under way.
  private final Cursor cursor = new Cursor();
  private final Cursor done = new Cursor();
  private int first;
  private int started;
  private int awaited;
  private Footer footerAt = Footer.NOT;

  /** Reads and writes by a queue, the engine of the worker. */
  public ShardIo(BlockFooter format, IoQueue queue) {
    this.format = format;
    this.queue = queue;
    steps = new Step[queue.depth()];
    Arrays.setAll(steps, i -> new Step());
    crcs = new int[format.layout().shardCount()];
    storedCrcs = new int[crcs.length];
    footer = format.newBuffer();
    gap = Arena.ofAuto().allocate(Math.max(1, format.gap()));
  }

  /** Begins with shards of a transfer, from {@code from}, inclusive, to {@code to}, exclusive. */
  void begin(Transfer transfer, int from, int to, Footer where) {
    cursor.begin(transfer, from, to);
    done.begin(transfer, from, to);
    first = from;
    started = 0;
    awaited = 0;
    footerAt = where;
  }

  /** Waits until nothing is under way any more. Does not throw. */
  void drain() {
    queue.drain();
  }

  /** Drops the transfer. */
  void clear() {
    cursor.clear();
    done.clear();
  }

  /** Most bytes of a step that reads. */
  int stepBytes() {
    return queue.readBytes();
  }

  /** Whether there is another step to wait for. */
  boolean hasNext() {
    return awaited < started || hasMore();
  }

  private boolean hasMore() {
    return (started == 0 && footerAt == Footer.FIRST) || cursor.hasNext();
  }

  /** Starts the reads that fit in after the next one, and awaits that; the next call reuses its step. */
  Step read(int fd) {
    while (started - awaited < steps.length && hasMore()) {
      Step step = steps[started % steps.length];
      if (started == 0 && footerAt == Footer.FIRST) {
        step.vector.clear().add(footer.segment());
        step.offset = format.offset();
        step.shardBytes = 0;
        step.hasFooter = true;
      } else {
        step.offset = cursor.fileOffset();
        cursor.next(step.vector, queue.readBytes(), true);
        step.shardBytes = step.vector.byteSize();
        step.hasFooter = !cursor.hasNext() && footerAt == Footer.LAST;
        if (step.hasFooter) {
          addFooter(step.vector);
        }
      }
      step.wanted = step.vector.byteSize();
      queue.read(fd, block, step.vector, step.offset);
      started++;
    }
    Step oldest = steps[awaited % steps.length];
    oldest.moved = queue.await();
    awaited++;
    return oldest;
  }

  /** Goes past the shards of a step that was read, the last one; takes their checksums when told. */
  void pass(Step step, boolean takesCrcs) {
    done.digest(step.shardBytes, takesCrcs ? crc : null, crcs, first);
  }

  /** The first shard of which not all bytes were passed. */
  int passed() {
    return done.shard();
  }

  /** Reads one stretch of the file into the buffer of the footer; returns the bytes that were there. */
  long readFooterAt(long offset, int fd) {
    IoVector vector = steps[0].vector.clear().add(footer.segment());
    queue.read(fd, block, vector, offset);
    return queue.await();
  }

  /** Writes the shards; those of a whole block with its footer along with the last bytes. */
  void write(int fd, NativePath path, boolean withFooter) {
    try {
      while (cursor.hasNext()) {
        if (started >= steps.length) {
          queue.await();
        }
        Step step = steps[started % steps.length];
        long offset = cursor.fileOffset();
        cursor.next(step.vector, queue.writeBytes(), false);
        done.digest(step.vector.byteSize(), crc, crcs, first);
        if (withFooter && !cursor.hasNext()) {
          putFooter(crcs);
          addFooter(step.vector);
        }
        queue.write(fd, path, step.vector, offset);
        started++;
      }
      for (int i = Math.min(started, steps.length); i > 0; i--) {
        queue.await();
      }
    } finally {
      queue.drain();
    }
  }

  /** Writes the footer of a block whose shards are all there. */
  void writeFooter(int fd, NativePath path, int[] shardCrcs) {
    putFooter(shardCrcs);
    IoVector vector = steps[0].vector.clear();
    addFooter(vector);
    try {
      queue.write(fd, path, vector, format.layout().blockSize());
      queue.await();
    } finally {
      queue.drain();
    }
  }

  private void putFooter(int[] shardCrcs) {
    format.write(footer, idHigh, idLow, shardCrcs);
    gap.fill((byte) 0);
  }

  /** Adds what follows a block: the bytes up to the footer, and the footer. */
  private void addFooter(IoVector vector) {
    if (format.gap() > 0) {
      vector.add(gap);
    }
    vector.add(footer.segment());
  }

  /**
   * Walks through the memory of neighbouring shards of a transfer: in steps, each of which is one vectored
   * call, or by bytes. A step is small enough that its bytes stay in a cache between the call and the
   * checksum, and covers bytes that follow one another in the file. Hot path: allocates nothing. Not
   * thread-safe.
   */
  private static final class Cursor {

    private @Nullable Transfer transfer;
    private int end;
    private int shard;
    private int segment;
    private long inSegment;
    private long inShard;

    /** Starts over with shards of a transfer; {@code to} is exclusive. */
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

    /** Goes on by a step of so many bytes at the most, and puts its memory into {@code vector}. */
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
}

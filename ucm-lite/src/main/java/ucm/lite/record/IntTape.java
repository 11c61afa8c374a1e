package ucm.lite.record;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.lite.trace.TraceException;

/**
 * A long row of integers: on the heap up to a bound, beyond it in a memory-mapped temporary file,
 * which the kernel writes and drops as memory gets short. The file has no name any more while it is
 * used, so nothing is left over however the process ends.
 *
 * <p>One thread writes; many may read after it is done.
 */
public final class IntTape implements AutoCloseable {
  private static final int CHUNK_INTS = 1 << 18;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  private final List<MemorySegment> chunks = new ArrayList<>();
  private final long heapInts;
  private final Arena arena = Arena.ofShared();
  private @Nullable FileChannel file;
  private long size;

  /** Creates an empty tape that keeps about {@code heapInts} integers on the heap. */
  public IntTape(long heapInts) {
    this.heapInts = heapInts;
  }

  long size() {
    return size;
  }

  /** Whether part of the tape is in a file. */
  boolean spilled() {
    return file != null;
  }

  void append(int[] values, int count) {
    long start = size;
    extend(start + count);
    write(start, values, count);
  }

  /** Makes the tape longer; what is new is 0. */
  public void extend(long newSize) {
    while ((long) chunks.size() * CHUNK_INTS < newSize) {
      chunks.add(chunk());
    }
    size = newSize;
  }

  /** Overwrites {@code count} integers from {@code position} on, which must be on the tape. */
  public void write(long position, int[] values, int count) {
    for (int done = 0; done < count; ) {
      long at = position + done;
      int inChunk = (int) (at % CHUNK_INTS);
      int now = Math.min(count - done, CHUNK_INTS - inChunk);
      MemorySegment.copy(values, done, chunks.get((int) (at / CHUNK_INTS)), INT, 4L * inChunk, now);
      done += now;
    }
  }

  /** Copies {@code count} integers from {@code position} on. */
  public void read(long position, int[] target, int count) {
    for (int done = 0; done < count; ) {
      long at = position + done;
      int inChunk = (int) (at % CHUNK_INTS);
      int now = Math.min(count - done, CHUNK_INTS - inChunk);
      MemorySegment.copy(chunks.get((int) (at / CHUNK_INTS)), INT, 4L * inChunk, target, done, now);
      done += now;
    }
  }

  private MemorySegment chunk() {
    if ((long) chunks.size() * CHUNK_INTS < heapInts) {
      return MemorySegment.ofArray(new int[CHUNK_INTS]);
    }
    Path folder = Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
    try {
      FileChannel channel = file == null ? open(folder) : file;
      file = channel;
      return channel.map(MapMode.READ_WRITE, channel.size(), 4L * CHUNK_INTS, arena);
    } catch (IOException e) {
      throw new TraceException(
          String.format(
              "the trace does not fit into memory, and cannot be kept in a file in %s: %s; choose"
                  + " another folder with UCM_JAVA_OPTS=-Djava.io.tmpdir=FOLDER",
              folder, e.getMessage()),
          e);
    }
  }

  private static FileChannel open(Path folder) throws IOException {
    Path path = Files.createTempFile(folder, "ucm-trace-", ".tmp");
    return FileChannel.open(
        path,
        StandardOpenOption.READ,
        StandardOpenOption.WRITE,
        StandardOpenOption.DELETE_ON_CLOSE);
  }

  @Override
  public void close() {
    arena.close();
    chunks.clear();
    try {
      if (file != null) {
        file.close();
      }
    } catch (IOException e) {
      throw new TraceException("a temporary file cannot be closed: " + e.getMessage(), e);
    }
  }
}

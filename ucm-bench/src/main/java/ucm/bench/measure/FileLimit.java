package ucm.bench.measure;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.cli.output.UsageException;
import ucm.lite.trace.FileFault;

/**
 * What plain file calls can do: create, pwrite, close and open, pread, close of one file a block on
 * several threads, in the same steps as the tasks of the store, and access on one thread. The calls are
 * those of {@link FileChannel} with buffers outside the heap, which are the system calls and a little
 * Java around them.
 *
 * <p>Files of each round are new, and their names stay until the whole folder is removed, because file
 * systems slow down when names come and go. Nothing is synced to the disk.
 */
public final class FileLimit implements AutoCloseable {

  private static final int PAGE = 4096;
  private static final int FOLDERS = 64;
  // Stays in a second-level cache of 1 MiB together with the pages it comes from.
  private static final int CHECKED_PART = 256 << 10;

  private enum Way {
    WRITE,
    READ,
    READ_CHECKED
  }

  private final Arena arena = Arena.ofShared();
  private final Path root;
  private final BenchThreads threads;
  private final int fileSize;
  private final Set<OpenOption> toWrite;
  private final Set<OpenOption> toRead;
  private final ByteBuffer[] buffers;
  private final Path[] files;
  private final @Nullable FileChannel[] open;
  private final BenchPlan plan;
  private final long blockSize;
  private long absent;

  /**
   * Makes folders for the files.
   *
   * @param root an empty folder
   * @param plan for its blocks a file each is made; where they pass by the page cache, sizes are rounded
   *     up to whole pages
   */
  public FileLimit(Path root, BenchPlan plan, BenchThreads threads) {
    this.root = root;
    this.threads = threads;
    this.plan = plan;
    this.blockSize = plan.layout().blockSize();
    int blocks = plan.blocks();
    boolean direct = plan.direct();
    this.fileSize = Math.toIntExact(direct ? Math.ceilDiv(blockSize, PAGE) * PAGE : blockSize);
    Set<OpenOption> more = direct ? Set.of(directOption()) : Set.of();
    this.toWrite = with(more, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    this.toRead = with(more, StandardOpenOption.READ);
    this.files = new Path[blocks];
    this.open = new FileChannel[blocks];
    this.buffers = new ByteBuffer[blocks];
    long stride = Math.ceilDiv((long) fileSize, PAGE) * PAGE;
    MemorySegment memory = arena.allocate(blocks * stride, PAGE);
    memory.fill((byte) 3);
    for (int i = 0; i < blocks; i++) {
      buffers[i] = memory.asSlice(i * stride, fileSize).asByteBuffer();
    }
    try {
      for (int i = 0; i < FOLDERS; i++) {
        Files.createDirectories(root.resolve(Integer.toString(i)));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("cannot make folders in " + root + ": " + FileFault.of(e), e);
    }
  }

  private static Set<OpenOption> with(Set<OpenOption> more, OpenOption... options) {
    Set<OpenOption> all = new HashSet<>(more);
    all.addAll(List.of(options));
    return Set.copyOf(all);
  }

  /** By its name, because javac refuses a class of jdk.unsupported under -Werror. */
  private static OpenOption directOption() {
    try {
      for (Object option :
          Class.forName("com.sun.nio.file.ExtendedOpenOption").getEnumConstants()) {
        if (option instanceof OpenOption open && open.toString().equals("DIRECT")) {
          return open;
        }
      }
    } catch (ClassNotFoundException e) {
      throw new UsageException("this Java cannot pass by the page cache: " + e.getMessage());
    }
    throw new UsageException("this Java cannot pass by the page cache: it has no DIRECT option");
  }

  /** Names the files of the next round, which do not exist yet. */
  public void round(int round) {
    for (int i = 0; i < files.length; i++) {
      files[i] = root.resolve(i % FOLDERS + "/" + round + "-" + i);
    }
  }

  /** Creates and writes the round's files; gigabytes per second. */
  public double write() throws InterruptedException {
    return move(Way.WRITE);
  }

  /** Reads the round's files; gigabytes per second. */
  public double read() throws InterruptedException {
    return move(Way.READ);
  }

  /**
   * Reads the round's files, and takes the checksum of each part while it is in the processor's cache;
   * gigabytes per second.
   */
  public double readChecked() throws InterruptedException {
    return move(Way.READ_CHECKED);
  }

  private double move(Way way) throws InterruptedException {
    long nanos = threads.time(plan, (step, thread) -> move(step, thread, way));
    return (double) files.length * fileSize / nanos;
  }

  private void move(BenchStep step, int thread, Way way) throws IOException {
    CRC32C crc = new CRC32C();
    for (int i = step.from() + thread; i < step.to(); i += threads.count()) {
      long end = step.offset() + step.length();
      boolean isLast = end >= blockSize;
      ByteBuffer buffer = buffers[i].clear();
      buffer.limit(isLast ? fileSize : (int) end).position((int) step.offset());
      FileChannel file = open[i];
      if (file == null || step.offset() == 0) {
        file = FileChannel.open(files[i], way == Way.WRITE ? toWrite : toRead);
        open[i] = file;
      }
      switch (way) {
        case WRITE -> write(file, buffer);
        case READ -> read(file, buffer, files[i]);
        case READ_CHECKED -> readChecked(file, buffer, files[i], crc);
      }
      if (isLast) {
        file.close();
      }
    }
  }

  private static void write(FileChannel file, ByteBuffer buffer) throws IOException {
    while (buffer.hasRemaining()) {
      file.write(buffer, buffer.position());
    }
  }

  private static void read(FileChannel file, ByteBuffer buffer, Path path) throws IOException {
    while (buffer.hasRemaining()) {
      if (file.read(buffer, buffer.position()) < 0) {
        throw new IOException(path + " is shorter than it was written");
      }
    }
  }

  private static void readChecked(FileChannel file, ByteBuffer buffer, Path path, CRC32C crc)
      throws IOException {
    int end = buffer.limit();
    crc.reset();
    for (int from = buffer.position(); from < end; from = buffer.limit()) {
      buffer.limit(Math.min(end, from + CHECKED_PART));
      read(file, buffer, path);
      crc.update(buffer.position(from));
    }
  }

  /** Asks some times, on this thread, whether files of the round exist; answers per second. */
  public double access(int times, boolean existing) {
    Path[] asked = existing ? files : new Path[times];
    for (int i = 0; i < times && !existing; i++) {
      // Each of them once, like unknown ids: the kernel remembers names that are absent.
      asked[i] = files[i % files.length].resolveSibling("absent-" + absent++);
    }
    int found = 0;
    long start = System.nanoTime();
    for (int i = 0; i < times; i++) {
      if (Files.exists(asked[i % asked.length])) {
        found++;
      }
    }
    long nanos = System.nanoTime() - start;
    if (found != (existing ? times : 0)) {
      throw new IllegalStateException(
          "of " + times + " files in " + root + " " + found + " were found");
    }
    return times * 1e9 / nanos;
  }

  /** Closes also what an interrupted step left open. */
  @Override
  public void close() throws IOException {
    for (FileChannel file : open) {
      if (file != null) {
        file.close();
      }
    }
    arena.close();
  }
}

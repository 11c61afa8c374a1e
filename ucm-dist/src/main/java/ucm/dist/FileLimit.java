package ucm.dist;

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

/**
 * What plain file calls can do: create, pwrite, close and open, pread, close of one file a block on
 * several threads, and access on one. The calls are those of {@link FileChannel} with buffers outside
 * the heap, which are the system calls and a little Java around them.
 *
 * <p>Files of each round are new and stay until the whole folder is removed, because file systems slow
 * down when names come and go. Nothing is synced to the disk.
 */
final class FileLimit implements AutoCloseable {

  private static final int PAGE = 4096;
  private static final int FOLDERS = 64;

  private final Arena arena = Arena.ofShared();
  private final Path root;
  private final BenchThreads threads;
  private final int fileSize;
  private final Set<OpenOption> toWrite;
  private final Set<OpenOption> toRead;
  private final ByteBuffer[] buffers;
  private final Path[] files;

  /**
   * Makes folders for the files.
   *
   * @param root an empty folder
   * @param direct whether to pass by the page cache; sizes are then rounded up to whole pages
   */
  FileLimit(Path root, int blocks, long blockSize, boolean direct, BenchThreads threads) {
    this.root = root;
    this.threads = threads;
    this.fileSize = Math.toIntExact(direct ? Math.ceilDiv(blockSize, PAGE) * PAGE : blockSize);
    Set<OpenOption> more = direct ? Set.of(directOption()) : Set.of();
    this.toWrite = with(more, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    this.toRead = with(more, StandardOpenOption.READ);
    this.files = new Path[blocks];
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
      throw new UncheckedIOException("cannot make folders in " + root + ": " + e, e);
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
  void round(int round) {
    for (int i = 0; i < files.length; i++) {
      files[i] = root.resolve(i % FOLDERS + "/" + round + "-" + i);
    }
  }

  /** Creates and writes the round's files; gigabytes per second. */
  double write() throws InterruptedException {
    return gigabytesPerSecond(
        threads.time(
            thread -> {
              for (int i = thread; i < files.length; i += threads.count()) {
                ByteBuffer from = buffers[i].clear();
                try (FileChannel file = FileChannel.open(files[i], toWrite)) {
                  while (from.hasRemaining()) {
                    file.write(from, from.position());
                  }
                }
              }
            }));
  }

  /** Reads the round's files; gigabytes per second. */
  double read() throws InterruptedException {
    return gigabytesPerSecond(
        threads.time(
            thread -> {
              for (int i = thread; i < files.length; i += threads.count()) {
                ByteBuffer to = buffers[i].clear();
                try (FileChannel file = FileChannel.open(files[i], toRead)) {
                  while (to.hasRemaining()) {
                    if (file.read(to, to.position()) < 0) {
                      throw new IOException(files[i] + " is shorter than it was written");
                    }
                  }
                }
              }
            }));
  }

  /** Asks some times, on this thread, whether files of the round exist; answers per second. */
  double access(int times, boolean existing) {
    Path[] asked = files.clone();
    if (!existing) {
      for (int i = 0; i < asked.length; i++) {
        asked[i] = asked[i].resolveSibling("absent-" + i);
      }
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

  private double gigabytesPerSecond(long nanos) {
    return (double) files.length * fileSize / nanos;
  }

  @Override
  public void close() {
    arena.close();
  }
}

package ucm.store.posix;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * What a disk was told, in order: the log that {@code sick_fs.c} writes. From it, and the image as it
 * was before, the disk is made up as a loss of power at some moment may leave it.
 */
final class DiskLog {

  private static final long WRITE = 1;
  private static final long FLUSH = 2;
  private static final long MARK = 3;
  private static final int HEAD_BYTES = 24;
  private static final int SECTOR_BYTES = 512;
  private static final int PAGE_BYTES = 4096;

  private record Entry(long type, long number, MemorySegment bytes) {}

  private final List<Entry> entries = new ArrayList<>();

  private DiskLog() {}

  /** Reads a log. */
  static DiskLog read(Path file, Arena arena) throws IOException {
    DiskLog log = new DiskLog();
    try (FileChannel channel = FileChannel.open(file)) {
      MemorySegment all = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
      for (long at = 0; at < all.byteSize(); ) {
        long length = all.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 16);
        log.entries.add(
            new Entry(
                all.get(ValueLayout.JAVA_LONG_UNALIGNED, at),
                all.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8),
                all.asSlice(at + HEAD_BYTES, length)));
        at += HEAD_BYTES + length;
      }
    }
    return log;
  }

  /** How many entries. */
  int size() {
    return entries.size();
  }

  /** How often the disk was told to keep what it had. */
  int flushes() {
    return (int) entries.stream().filter(entry -> entry.type == FLUSH).count();
  }

  /** The last number that was marked before an entry, or 0. */
  long markBefore(int end) {
    for (int i = end - 1; i >= 0; i--) {
      if (entries.get(i).type == MARK) {
        return entries.get(i).number;
      }
    }
    return 0;
  }

  /** The entry after the last flush before an entry: what is older is on the disk for certain. */
  int keptBefore(int end) {
    for (int i = end - 1; i >= 0; i--) {
      if (entries.get(i).type == FLUSH) {
        return i + 1;
      }
    }
    return 0;
  }

  /** Writes to an image what the disk was told by the entries from one to another, exclusive. */
  void apply(Path image, int from, int to) throws IOException {
    try (FileChannel disk = FileChannel.open(image, StandardOpenOption.WRITE)) {
      for (Entry entry : entries.subList(from, to)) {
        if (entry.type == WRITE) {
          write(disk, entry.bytes, entry.number);
        }
      }
    }
  }

  /**
   * The same for what the disk had only in its cache: some of it is lost, in any order, and of some
   * only part of the sectors made it.
   *
   * @param share how much of it is written, from 0 to 1
   */
  void applySome(Path image, int from, int to, double share, Random random) throws IOException {
    try (FileChannel disk = FileChannel.open(image, StandardOpenOption.WRITE)) {
      for (Entry entry : entries.subList(from, to)) {
        if (entry.type != WRITE || random.nextDouble() >= share) {
          continue;
        }
        // The superblock of ext4 is written outside of its journal and must not be torn.
        boolean torn = entry.number >= PAGE_BYTES && random.nextInt(4) == 0;
        for (long at = 0; torn && at < entry.bytes.byteSize(); at += SECTOR_BYTES) {
          if (random.nextBoolean()) {
            long end = Math.min(at + SECTOR_BYTES, entry.bytes.byteSize());
            write(disk, entry.bytes.asSlice(at, end - at), entry.number + at);
          }
        }
        if (!torn) {
          write(disk, entry.bytes, entry.number);
        }
      }
    }
  }

  private static void write(FileChannel disk, MemorySegment bytes, long offset) throws IOException {
    ByteBuffer buffer = bytes.asByteBuffer();
    long at = offset;
    while (buffer.hasRemaining()) {
      at += disk.write(buffer, at);
    }
  }
}

package ucm.platform.libc;

import java.lang.foreign.ValueLayout;

/**
 * The state of a file, a folder or something else: a {@code struct statx}, filled in over and over by
 * {@link FileOperations#stat}. Times are nanoseconds since 1970. Not thread-safe.
 */
public final class FileStat {

  /** Bits of what is asked for: the type, the number of names, the time of change, the size, all. */
  static final int TYPE = 0x1;

  static final int NLINK = 0x4;
  static final int CTIME = 0x80;
  static final int SIZE = 0x200;
  static final int BASIC = 0x7ff;

  private static final int BYTES = 256;
  private static final int NLINK_AT = 16;
  private static final int MODE_AT = 28;
  private static final int INODE_AT = 32;
  private static final int SIZE_AT = 40;
  private static final int BLOCKS_AT = 48;
  private static final int ATIME_AT = 64;
  private static final int CTIME_AT = 96;
  private static final int MTIME_AT = 112;

  private static final int S_IFMT = 0xf000;
  private static final int S_IFDIR = 0x4000;
  private static final int S_IFREG = 0x8000;
  private static final int BYTES_OF_STAT_BLOCK = 512;
  private static final long NANOS = 1_000_000_000L;

  final NativeBuffer statx = new NativeBuffer(BYTES);

  /** Nothing is known yet. */
  public FileStat() {}

  private long word(int at) {
    return statx.bytes.get(ValueLayout.JAVA_LONG, at);
  }

  private int type() {
    return statx.bytes.get(ValueLayout.JAVA_SHORT, MODE_AT) & S_IFMT;
  }

  private long time(int at) {
    return word(at) * NANOS + statx.bytes.get(ValueLayout.JAVA_INT, at + Long.BYTES);
  }

  /** Whether it is a regular file. */
  public boolean isFile() {
    return type() == S_IFREG;
  }

  /** Whether it is a folder. */
  public boolean isFolder() {
    return type() == S_IFDIR;
  }

  /** Its number in its file system, which another file of the same name does not have. */
  public long inode() {
    return word(INODE_AT);
  }

  /** Bytes from its start to its end. */
  public long size() {
    return word(SIZE_AT);
  }

  /** Bytes that the file system has allocated for it; may not yet include what was just written. */
  public long allocatedBytes() {
    return word(BLOCKS_AT) * BYTES_OF_STAT_BLOCK;
  }

  /** Its access time. */
  public long lastUseNanos() {
    return time(ATIME_AT);
  }

  /** When its bytes, or the entries of the folder, last changed. */
  public long changedNanos() {
    return time(MTIME_AT);
  }

  boolean hasName() {
    return statx.bytes.get(ValueLayout.JAVA_INT, NLINK_AT) != 0;
  }

  /** When its bytes, its names or its attributes last changed. */
  long statusChangedNanos() {
    return time(CTIME_AT);
  }
}

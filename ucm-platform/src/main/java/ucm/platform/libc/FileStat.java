package ucm.platform.libc;

/**
 * The state of a file, a folder or something else; filled in over and over by
 * {@link FileOperations#stat}. Times are nanoseconds since 1970. Not thread-safe.
 */
public final class FileStat {

  private static final long NANOS = 1_000_000_000L;

  private int type;
  private long inode;
  private long size;
  private long allocatedBytes;
  private long lastUseNanos;
  private long changedNanos;

  void set(int fileType, long fileInode, long byteSize, long allocated) {
    type = fileType;
    inode = fileInode;
    size = byteSize;
    allocatedBytes = allocated;
  }

  void setTimes(long useSeconds, int useNanos, long changeSeconds, int changeNanos) {
    lastUseNanos = useSeconds * NANOS + useNanos;
    changedNanos = changeSeconds * NANOS + changeNanos;
  }

  /** Whether it is a regular file. */
  public boolean isFile() {
    return type == Statx.S_IFREG;
  }

  /** Whether it is a folder. */
  public boolean isFolder() {
    return type == Statx.S_IFDIR;
  }

  /** Its number in its file system, which another file of the same name does not have. */
  public long inode() {
    return inode;
  }

  /** Bytes from its start to its end. */
  public long size() {
    return size;
  }

  /** Bytes that the file system has allocated for it; may not yet include what was just written. */
  public long allocatedBytes() {
    return allocatedBytes;
  }

  /** Its access time. */
  public long lastUseNanos() {
    return lastUseNanos;
  }

  /** When its bytes, or the entries of the folder, last changed. */
  public long changedNanos() {
    return changedNanos;
  }
}

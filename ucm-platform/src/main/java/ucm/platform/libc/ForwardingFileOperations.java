package ucm.platform.libc;

import java.util.function.Predicate;

/**
 * Calls that others make, on files that may really be at other paths than the caller says. Folders are
 * passed through as they are. Thread-safe when {@link #map} is.
 */
public abstract class ForwardingFileOperations implements FileOperations {

  /** What is called in the end. */
  protected final FileOperations files;

  /** Forwards all calls. */
  protected ForwardingFileOperations(FileOperations files) {
    this.files = files;
  }

  /** Where a file really is, by default where the caller says; valid until the thread asks again. */
  protected NativePath map(NativePath path) {
    return path;
  }

  @Override
  public int openRead(NativePath path) {
    return files.openRead(map(path));
  }

  @Override
  public int openUnnoticed(NativePath path) {
    return files.openUnnoticed(map(path));
  }

  @Override
  public int openWrite(NativePath path) {
    return files.openWrite(map(path));
  }

  @Override
  public int create(NativePath path) {
    return files.create(map(path));
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    files.setDirect(fd, map(path));
  }

  @Override
  public long size(NativePath path) {
    return files.size(map(path));
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    return files.stat(map(path), into);
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    return files.touch(map(path), lastUseNanos);
  }

  @Override
  public long size(int fd, NativePath path) {
    return files.size(fd, map(path));
  }

  @Override
  public long version(int fd, NativePath path) {
    return files.version(fd, map(path));
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    return files.readAt(fd, map(path), into, offset);
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    return files.writeAt(fd, map(path), from, offset);
  }

  @Override
  public void allocate(int fd, NativePath path, long size) {
    files.allocate(fd, map(path), size);
  }

  @Override
  public void syncData(int fd, NativePath path) {
    files.syncData(fd, map(path));
  }

  @Override
  public void syncFolder(NativePath folder) {
    files.syncFolder(folder);
  }

  @Override
  public void close(int fd, NativePath path) {
    files.close(fd, map(path));
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    files.rename(from, to);
  }

  @Override
  public boolean remove(NativePath path) {
    return files.remove(map(path));
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    return files.makeFolder(folder);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    return files.tryLock(fd, map(path));
  }

  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    files.forEachName(folder, visitor);
  }
}

package ucm.platform.libc;

/**
 * Calls on files that really are at other places than the caller says. Folders are passed through as
 * they are; subclasses add what lists and renames, and override what is more than another place.
 * Thread-safe when {@link #place} is.
 */
public abstract class MappedPathOperations implements FileOperations {

  /** What is called in the end. */
  protected final FileOperations files;

  /** Places files for other calls. */
  protected MappedPathOperations(FileOperations files) {
    this.files = files;
  }

  /** Where a file really is; valid until the thread asks again. */
  protected abstract NativePath place(NativePath path);

  @Override
  public int openRead(NativePath path) {
    return files.openRead(place(path));
  }

  @Override
  public int openUnnoticed(NativePath path) {
    return files.openUnnoticed(place(path));
  }

  @Override
  public int openWrite(NativePath path) {
    return files.openWrite(place(path));
  }

  @Override
  public int create(NativePath path) {
    return files.create(place(path));
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    files.setDirect(fd, place(path));
  }

  @Override
  public long size(NativePath path) {
    return files.size(place(path));
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    return files.stat(place(path), into);
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    return files.touch(place(path), lastUseNanos);
  }

  @Override
  public long size(int fd, NativePath path) {
    return files.size(fd, place(path));
  }

  @Override
  public long version(int fd, NativePath path) {
    return files.version(fd, place(path));
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    return files.readAt(fd, place(path), into, offset);
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    return files.writeAt(fd, place(path), from, offset);
  }

  @Override
  public void allocate(int fd, NativePath path, long size) {
    files.allocate(fd, place(path), size);
  }

  @Override
  public void syncData(int fd, NativePath path) {
    files.syncData(fd, place(path));
  }

  @Override
  public void syncFolder(NativePath folder) {
    files.syncFolder(folder);
  }

  @Override
  public void close(int fd, NativePath path) {
    files.close(fd, place(path));
  }

  @Override
  public boolean remove(NativePath path) {
    return files.remove(place(path));
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    return files.makeFolder(folder);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    return files.tryLock(fd, place(path));
  }
}

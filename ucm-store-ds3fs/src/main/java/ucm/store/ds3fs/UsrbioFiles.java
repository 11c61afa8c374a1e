package ucm.store.ds3fs;

import java.util.List;
import java.util.function.Predicate;
import ucm.store.common.FileSeam;
import ucm.store.common.FileStat;
import ucm.store.common.IoVector;
import ucm.store.common.NativePath;

/**
 * Ordinary system calls through the mount, which takes back the registration of a file before it is
 * closed. Thread-safe.
 */
final class UsrbioFiles implements FileSeam {

  private final FileSeam files;
  private final RegisteredFiles registered;

  UsrbioFiles(FileSeam files, RegisteredFiles registered) {
    this.files = files;
    this.registered = registered;
  }

  @Override
  public void close(int fd, NativePath path) {
    registered.deregister(fd);
    files.close(fd, path);
  }

  @Override
  public int openRead(NativePath path) {
    return files.openRead(path);
  }

  @Override
  public int openUnnoticed(NativePath path) {
    return files.openUnnoticed(path);
  }

  @Override
  public int openWrite(NativePath path) {
    return files.openWrite(path);
  }

  @Override
  public int create(NativePath path) {
    return files.create(path);
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    files.setDirect(fd, path);
  }

  @Override
  public long size(NativePath path) {
    return files.size(path);
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    return files.stat(path, into);
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    return files.touch(path, lastUseNanos);
  }

  @Override
  public long size(int fd, NativePath path) {
    return files.size(fd, path);
  }

  @Override
  public long version(int fd, NativePath path) {
    return files.version(fd, path);
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    return files.readAt(fd, path, into, offset);
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    return files.writeAt(fd, path, from, offset);
  }

  @Override
  public void setSize(int fd, NativePath path, long size) {
    files.setSize(fd, path, size);
  }

  @Override
  public void syncData(int fd, NativePath path) {
    files.syncData(fd, path);
  }

  @Override
  public void syncFolder(NativePath folder) {
    files.syncFolder(folder);
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    files.rename(from, to);
  }

  @Override
  public boolean remove(NativePath path) {
    return files.remove(path);
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    return files.makeFolder(folder);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    return files.tryLock(fd, path);
  }

  @Override
  public List<String> list(NativePath folder) {
    return files.list(folder);
  }

  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    files.forEachName(folder, visitor);
  }
}

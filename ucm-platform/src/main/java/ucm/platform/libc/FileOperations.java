package ucm.platform.libc;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

/**
 * The file system calls of the stores as one interface, so that tests can make any of them fail, fall
 * short or hang. {@link LibcFileOperations} makes the real ones.
 *
 * <p>Paths are {@link NativePath}s that the caller owns and the call does not keep; those handed in
 * beside a descriptor only name it in messages. Files are opened without following a symbolic link at
 * the end of the path, are closed on exec, and get mode 0600; folders get 0700. Thread-safe. Nothing
 * is allocated where a call succeeds, except by {@link #list} and {@link #forEachName}.
 *
 * <p>Every method throws {@link FileException} for what its description does not name as a result.
 * All of them block for as long as the file system does.
 */
public interface FileOperations {

  /** In place of a descriptor or a size: it is not there. */
  int ABSENT = -1;

  /** In place of a descriptor or a size: something else than a regular file is there. */
  int OTHER_TYPE = -2;

  /**
   * Opens a file for reading.
   *
   * @return a descriptor, {@link #ABSENT}, or {@link #OTHER_TYPE} for a symbolic link; a folder can be
   *     opened, and fails when it is read
   */
  int openRead(NativePath path);

  /**
   * Opens a file for reading so that it does not count as used: its access time stays, where the
   * kernel allows that (it does to the owner).
   *
   * @return as {@link #openRead}
   */
  int openUnnoticed(NativePath path);

  /**
   * Opens a file that is there for reading and writing.
   *
   * @return a descriptor, {@link #ABSENT} or {@link #OTHER_TYPE}
   */
  int openWrite(NativePath path);

  /**
   * Creates a file that is not there yet, for reading and writing.
   *
   * @return a descriptor, or {@link #ABSENT} when its folder is missing
   */
  int create(NativePath path);

  /**
   * Makes the reads and writes of an open file go past the page cache (O_DIRECT). From then on offset,
   * length and memory of each must be multiples of {@code BlockFooter.ALIGNMENT}.
   *
   * @throws FileException with EINVAL where the file system does not do that
   */
  void setDirect(int fd, NativePath path);

  /**
   * The size of a file in bytes.
   *
   * @return {@link #ABSENT} or {@link #OTHER_TYPE} instead
   */
  long size(NativePath path);

  /**
   * The state of what a path names; a symbolic link is not followed.
   *
   * @param into is filled in when it is there
   * @return whether it is there
   */
  boolean stat(NativePath path, FileStat into);

  /**
   * Sets the access time of a file, and no other.
   *
   * @param lastUseNanos since 1970
   * @return whether it is there
   */
  boolean touch(NativePath path, long lastUseNanos);

  /** The size of an open file in bytes, or {@link #OTHER_TYPE} when it is a pipe. */
  long size(int fd, NativePath path);

  /**
   * Tells versions of an open file apart: a number, 0 or more, that is another one once the bytes, the
   * size or the name of the file have changed, as far as the clock of the file system tells. One
   * that cannot say tells the size.
   *
   * @return {@link #ABSENT} when the file has no name any more
   */
  default long version(int fd, NativePath path) {
    return size(fd, path);
  }

  /**
   * Reads once. May read less than asked.
   *
   * @param into where to; not changed
   * @param offset where in the file to start, in bytes
   * @return how many bytes were read; 0 at the end of the file
   */
  long readAt(int fd, NativePath path, IoVector into, long offset);

  /**
   * Writes once. May write less than asked.
   *
   * @param from where from; not changed
   * @param offset where in the file to start, in bytes
   * @return how many bytes were written
   */
  long writeAt(int fd, NativePath path, IoVector from, long offset);

  /**
   * Gives a new file its size, and the room that it will take where the file system can set it aside,
   * so that a full disk shows before bytes are moved. What is not written reads as zeros.
   */
  void allocate(int fd, NativePath path, long size);

  /** Waits until the bytes of a file, and its size, are on the device. */
  void syncData(int fd, NativePath path);

  /** Waits until the entries of a folder are on the device. */
  void syncFolder(NativePath folder);

  /** Waits until the name of a file is on the device: the entries of its folder are. */
  default void syncName(NativePath file) {
    syncFolder(new NativePath().set(file, file.slashBefore(file.length())));
  }

  /** Closes a file. It is closed also when this throws, and must not be closed again. */
  void close(int fd, NativePath path);

  /** Gives a file another name in the same file system; replaces a file that has that name. */
  void rename(NativePath from, NativePath to);

  /**
   * Removes a file.
   *
   * @return whether it was there
   */
  boolean remove(NativePath path);

  /**
   * Makes a folder in one that is there.
   *
   * @return whether it was missing
   * @throws FileException with ENOTDIR when something else has its name, also a symbolic link to a
   *     folder
   */
  boolean makeFolder(NativePath folder);

  /**
   * Refuses a folder within a directory that is a link: its target is not ours.
   *
   * @throws FileException with ENOTDIR, also for anything else that is no folder
   */
  default void requireOwn(NativePath folder) {
    FileStat stat = new FileStat();
    if (stat(folder, stat) && !stat.isFolder()) {
      throw new FileException("open", folder, Errno.ENOTDIR);
    }
  }

  /**
   * Takes the lock of a file, which is held until the descriptor is closed, at the latest when the
   * process dies. Does not wait.
   *
   * @return whether it was free
   */
  boolean tryLock(int fd, NativePath path);

  /**
   * The names in a folder, in any order; none when the folder is missing. A symbolic link in its place
   * is not followed, but by a path that ends with {@code /.}.
   *
   * @throws FileException with ENOTDIR when something else is in its place
   */
  default List<String> list(NativePath folder) {
    List<String> names = new ArrayList<>();
    forEachName(folder, names::add);
    return names;
  }

  /**
   * Hands out the names in a folder one after the other, so that a large one takes no memory.
   *
   * @param visitor returns whether it wants another name
   */
  void forEachName(NativePath folder, Predicate<? super String> visitor);
}

package ucm.platform.libc;

import ucm.api.StoreException;

/**
 * A file system call failed. The message is the call, the path, and the error's name and text: {@code
 * open /x/y: EACCES (Permission denied)}.
 */
public final class FileException extends StoreException {

  private static final long serialVersionUID = 1L;

  private final int errno;

  /**
   * Says what failed.
   *
   * @param call the system call
   * @param path what it was about
   * @param errno the number of the error, see {@link Errno}
   */
  public FileException(String call, Object path, int errno) {
    super(call + " " + path + ": " + Errno.name(errno) + " (" + Libc.strerror(errno) + ")");
    this.errno = errno;
  }

  /** The number of the error, see {@link Errno}. */
  public int errno() {
    return errno;
  }
}

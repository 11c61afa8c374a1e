package ucm.store.file.volume;

import java.util.stream.IntStream;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;

/**
 * Distinguishes errors of a failing volume from those of one that works and refuses.
 *
 * <p>Full (ENOSPC, EDQUOT), read-only (EROFS) or forbidden (EACCES, EPERM) is an answer: the dump fails
 * by itself and at once, while what is stored can be looked up and loaded. A breaker that opened for
 * these would turn a full disk into an empty one. Limits of this process (open files, memory), calls
 * that a file system does not know, and something else in place of a folder or a file are no fault of the
 * volume either. All else is.
 */
public final class VolumeFaults {

  private static final int EBADF = 9;
  private static final int ENOMEM = 12;
  private static final int ENFILE = 23;
  private static final int EFBIG = 27;
  private static final int EMLINK = 31;
  private static final int ENAMETOOLONG = 36;
  private static final int ENOSYS = 38;

  private static final int[] ANSWERS = {
    Errno.ENOSPC,
    Errno.EDQUOT,
    Errno.EROFS,
    Errno.EACCES,
    Errno.EPERM,
    Errno.EMFILE,
    ENFILE,
    ENOMEM,
    EBADF,
    EFBIG,
    EMLINK,
    ENAMETOOLONG,
    ENOSYS,
    Errno.EINVAL,
    Errno.EOPNOTSUPP,
    Errno.ENOLCK,
    Errno.EEXIST,
    Errno.ENOTDIR,
    Errno.EISDIR,
    Errno.ELOOP
  };

  private VolumeFaults() {}

  /** Whether a failure says that the volume does not work; only those of system calls do. */
  public static boolean isFault(RuntimeException failure) {
    return failure instanceof FileException file
        && IntStream.of(ANSWERS).noneMatch(answer -> answer == file.errno());
  }
}

package ucm.platform.libc;

/** Error numbers of Linux that code decides by, and the names of those that messages show. */
public final class Errno {

  /** Operation not permitted. */
  public static final int EPERM = 1;

  /** No such file or directory. */
  public static final int ENOENT = 2;

  /** Interrupted system call; the call is made again. */
  public static final int EINTR = 4;

  /** Input/output error: the device failed. */
  public static final int EIO = 5;

  /** Resource temporarily unavailable; another process holds the lock. */
  public static final int EAGAIN = 11;

  /** Out of memory. */
  public static final int ENOMEM = 12;

  /** Permission denied. */
  public static final int EACCES = 13;

  /** File exists. */
  public static final int EEXIST = 17;

  /** Not a directory: a part of the path is a file. */
  public static final int ENOTDIR = 20;

  /** Is a directory. */
  public static final int EISDIR = 21;

  /** Invalid argument. */
  public static final int EINVAL = 22;

  /** Too many open files in this process. */
  public static final int EMFILE = 24;

  /** No space left on device. */
  public static final int ENOSPC = 28;

  /** Illegal seek: a pipe or socket in place of a file. */
  public static final int ESPIPE = 29;

  /** Read-only file system. */
  public static final int EROFS = 30;

  /** No locks available. */
  public static final int ENOLCK = 37;

  /** Function not implemented: the kernel, or what it runs in, has no such call. */
  public static final int ENOSYS = 38;

  /** Directory not empty. */
  public static final int ENOTEMPTY = 39;

  /** Too many levels of symbolic links; also a symbolic link where none is followed. */
  public static final int ELOOP = 40;

  /** No such device or address: a socket or device file without a process or device that serves it. */
  public static final int ENXIO = 6;

  /** Operation not supported by this file system. */
  public static final int EOPNOTSUPP = 95;

  /** The time has passed. */
  public static final int ETIMEDOUT = 110;

  /** Stale file handle: an NFS server has forgotten the file. */
  public static final int ESTALE = 116;

  /** Disk quota exceeded. */
  public static final int EDQUOT = 122;

  private Errno() {}

  /** The symbolic name of an error number, for example {@code EACCES}; its number when rare. */
  public static String name(int errno) {
    return switch (errno) {
      case EPERM -> "EPERM";
      case ENOENT -> "ENOENT";
      case EINTR -> "EINTR";
      case EIO -> "EIO";
      case ENXIO -> "ENXIO";
      case 9 -> "EBADF";
      case EAGAIN -> "EAGAIN";
      case ENOMEM -> "ENOMEM";
      case EACCES -> "EACCES";
      case 14 -> "EFAULT";
      case 16 -> "EBUSY";
      case EEXIST -> "EEXIST";
      case 18 -> "EXDEV";
      case 19 -> "ENODEV";
      case ENOTDIR -> "ENOTDIR";
      case EISDIR -> "EISDIR";
      case EINVAL -> "EINVAL";
      case 23 -> "ENFILE";
      case EMFILE -> "EMFILE";
      case 26 -> "ETXTBSY";
      case 27 -> "EFBIG";
      case ENOSPC -> "ENOSPC";
      case ESPIPE -> "ESPIPE";
      case EROFS -> "EROFS";
      case 31 -> "EMLINK";
      case 36 -> "ENAMETOOLONG";
      case ENOLCK -> "ENOLCK";
      case ENOSYS -> "ENOSYS";
      case ENOTEMPTY -> "ENOTEMPTY";
      case ELOOP -> "ELOOP";
      case EOPNOTSUPP -> "EOPNOTSUPP";
      case 107 -> "ENOTCONN";
      case ETIMEDOUT -> "ETIMEDOUT";
      case 112 -> "EHOSTDOWN";
      case ESTALE -> "ESTALE";
      case 121 -> "EREMOTEIO";
      case EDQUOT -> "EDQUOT";
      default -> "errno " + errno;
    };
  }
}

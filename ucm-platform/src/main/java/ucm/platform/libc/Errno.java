package ucm.platform.libc;

/** Error numbers of Linux that code decides by, see errno(3), and the names that messages show. */
public final class Errno {

  public static final int EPERM = 1;
  public static final int ENOENT = 2;
  public static final int EINTR = 4;
  public static final int EIO = 5;
  public static final int ENXIO = 6;
  public static final int EAGAIN = 11;
  public static final int ENOMEM = 12;
  public static final int EACCES = 13;
  public static final int EEXIST = 17;
  public static final int ENOTDIR = 20;
  public static final int EISDIR = 21;
  public static final int EINVAL = 22;
  public static final int EMFILE = 24;
  public static final int ENOSPC = 28;
  public static final int ESPIPE = 29;
  public static final int EROFS = 30;
  public static final int ENOLCK = 37;
  public static final int ENOSYS = 38;
  public static final int ELOOP = 40;
  public static final int EOPNOTSUPP = 95;
  public static final int ETIMEDOUT = 110;
  public static final int ESTALE = 116;
  public static final int EDQUOT = 122;

  private static final String NAMES =
      """
      1 EPERM 2 ENOENT 4 EINTR 5 EIO 6 ENXIO 9 EBADF 11 EAGAIN 12 ENOMEM 13 EACCES 14 EFAULT
      16 EBUSY 17 EEXIST 18 EXDEV 19 ENODEV 20 ENOTDIR 21 EISDIR 22 EINVAL 23 ENFILE 24 EMFILE
      26 ETXTBSY 27 EFBIG 28 ENOSPC 29 ESPIPE 30 EROFS 31 EMLINK 36 ENAMETOOLONG 37 ENOLCK
      38 ENOSYS 39 ENOTEMPTY 40 ELOOP 95 EOPNOTSUPP 107 ENOTCONN 110 ETIMEDOUT 112 EHOSTDOWN
      116 ESTALE 121 EREMOTEIO 122 EDQUOT
      """;

  private Errno() {}

  /** The symbolic name of an error number, for example {@code EACCES}; its number when rare. */
  public static String name(int errno) {
    String names = " " + NAMES.replace('\n', ' ');
    int at = names.indexOf(" " + errno + " E");
    if (at < 0) {
      return "errno " + errno;
    }
    int start = names.indexOf('E', at);
    return names.substring(start, names.indexOf(' ', start));
  }
}

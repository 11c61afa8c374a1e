package ucm.store.ds3fs;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;

/**
 * The functions of 3FS's {@code libhf3fs_api_shared.so}, and the layout of what they take, as {@code
 * hf3fs_usrbio.h} of 3FS has them on 64 bits. {@link #bind} comes before any other call. Structures are
 * handed in by their address, and are of an arena that is closed by hand.
 */
final class UsrbioCalls {

  // Bytes of structures, and offsets in them.
  static final int IOV_BYTES = 312; // struct hf3fs_iov
  static final int IOV_BASE_AT = 0; // uint8_t *base
  static final int IOR_BYTES = 600; // struct hf3fs_ior
  static final int CQE_BYTES = 24; // struct hf3fs_cqe
  static final int CQE_RESULT_AT = 8; // int64_t result: bytes moved, or an error number, negated
  static final int CQE_USERDATA_AT = 16; // const void *userdata
  static final int TIMESPEC_BYTES = 16; // struct timespec

  /** Longest name of a mount point, with the zero at its end. */
  static final int MOUNT_POINT_BYTES = 256;

  private UsrbioCalls() {}

  /** Resolves all functions, once. */
  static void bind(NativeLibrary library) {
    Native.register(UsrbioCalls.class, library);
  }

  /** Returns 0 for a descriptor of another file system. */
  static native byte hf3fs_is_hf3fs(int fd);

  /** Returns the length of the mount point with a zero at its end, or -1 when the path is on none. */
  static native int hf3fs_extract_mount_point(long into, int size, long path);

  /** Returns 0, or an error number, negated. */
  static native int hf3fs_iovcreate(long iov, long mountPoint, long size, long blockSize, int numa);

  static native void hf3fs_iovdestroy(long iov);

  /** Returns 0, or an error number, negated. */
  static native int hf3fs_iorcreate4(
      long ior,
      long mountPoint,
      int entries,
      byte forRead,
      int ioDepth,
      int timeout,
      int numa,
      long flags);

  static native void hf3fs_iordestroy(long ior);

  /** Returns 0 or less, or an error number. */
  static native int hf3fs_reg_fd(int fd, long flags);

  static native void hf3fs_dereg_fd(int fd);

  /** Returns 0 or more, or an error number, negated; EAGAIN when the ring is full. */
  static native int hf3fs_prep_io(
      long ior, long iov, byte read, long address, int fd, long offset, long length, long userdata);

  /** Returns 0, or an error number, negated. */
  static native int hf3fs_submit_ios(long ior);

  /**
   * Returns how many results there are, or an error number, negated.
   *
   * @param until a time of day
   */
  static native int hf3fs_wait_for_ios(long ior, long cqes, int cqec, int least, long until);
}

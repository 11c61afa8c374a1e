package ucm.store.ds3fs;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.lang.foreign.MemorySegment;

/**
 * The functions of 3FS's {@code libhf3fs_api_shared.so}, and the layout of what they take, as {@code
 * hf3fs_usrbio.h} of 3FS has them on 64 bits. {@link #bind} comes before any other call. What is handed
 * in is of an arena that is closed by hand.
 */
final class UsrbioCalls {

  /** Bytes of {@code struct hf3fs_iov}. */
  static final int IOV_BYTES = 312;

  /** Offset of {@code uint8_t *base}. */
  static final int IOV_BASE_AT = 0;

  /** Bytes of {@code struct hf3fs_ior}. */
  static final int IOR_BYTES = 600;

  /** Bytes of {@code struct hf3fs_cqe}. */
  static final int CQE_BYTES = 24;

  /** Offset of {@code int64_t result}: bytes moved, or an error number, negated. */
  static final int CQE_RESULT_AT = 8;

  /** Offset of {@code const void *userdata}. */
  static final int CQE_USERDATA_AT = 16;

  /** Bytes of {@code struct timespec}. */
  static final int TIMESPEC_BYTES = 16;

  /** Longest name of a mount point, with the zero at its end. */
  static final int MOUNT_POINT_BYTES = 256;

  private UsrbioCalls() {}

  /** Resolves all functions, once. */
  static void bind(NativeLibrary library) {
    Native.register(UsrbioCalls.class, library);
  }

  static boolean isHf3fs(int fd) {
    return hf3fs_is_hf3fs(fd) != 0;
  }

  /** Returns the length of the mount point with a zero at its end, or -1 when the path is on none. */
  static int extractMountPoint(MemorySegment into, MemorySegment path) {
    return hf3fs_extract_mount_point(into.address(), (int) into.byteSize(), path.address());
  }

  /** Returns 0, or an error number, negated. */
  static int createMemory(MemorySegment iov, MemorySegment mountPoint, long bytes, int numa) {
    return hf3fs_iovcreate(iov.address(), mountPoint.address(), bytes, 0, numa);
  }

  static void destroyMemory(MemorySegment iov) {
    hf3fs_iovdestroy(iov.address());
  }

  /** Bytes of shared memory that a ring takes. */
  static long ringBytes(int entries) {
    return hf3fs_ior_size(entries);
  }

  /** Returns 0, or an error number, negated. */
  static int createRing(
      MemorySegment ior,
      MemorySegment mountPoint,
      int entries,
      boolean isRead,
      int ioDepth,
      int numa) {
    return hf3fs_iorcreate4(
        ior.address(), mountPoint.address(), entries, flag(isRead), ioDepth, 0, numa, 0);
  }

  static void destroyRing(MemorySegment ior) {
    hf3fs_iordestroy(ior.address());
  }

  /** Returns 0 or less, or an error number. */
  static int registerFile(int fd) {
    return hf3fs_reg_fd(fd, 0);
  }

  static void deregisterFile(int fd) {
    hf3fs_dereg_fd(fd);
  }

  /** Returns 0 or more, or an error number, negated; EAGAIN when the ring is full. */
  static int prepare(
      MemorySegment ior,
      MemorySegment iov,
      boolean isRead,
      long address,
      int fd,
      long offset,
      long length,
      long userdata) {
    return hf3fs_prep_io(
        ior.address(), iov.address(), flag(isRead), address, fd, offset, length, userdata);
  }

  /** Returns 0, or an error number, negated. */
  static int submit(MemorySegment ior) {
    return hf3fs_submit_ios(ior.address());
  }

  /**
   * Returns how many results there are, or an error number, negated.
   *
   * @param until a time of day
   */
  static int await(
      MemorySegment ior, MemorySegment cqes, int most, int least, MemorySegment until) {
    return hf3fs_wait_for_ios(ior.address(), cqes.address(), most, least, until.address());
  }

  private static byte flag(boolean value) {
    return (byte) (value ? 1 : 0);
  }

  private static native byte hf3fs_is_hf3fs(int fd);

  private static native int hf3fs_extract_mount_point(long into, int size, long path);

  private static native int hf3fs_iovcreate(
      long iov, long mountPoint, long size, long blockSize, int numa);

  private static native void hf3fs_iovdestroy(long iov);

  private static native long hf3fs_ior_size(int entries);

  private static native int hf3fs_iorcreate4(
      long ior,
      long mountPoint,
      int entries,
      byte forRead,
      int ioDepth,
      int timeout,
      int numa,
      long flags);

  private static native void hf3fs_iordestroy(long ior);

  private static native int hf3fs_reg_fd(int fd, long flags);

  private static native void hf3fs_dereg_fd(int fd);

  private static native int hf3fs_prep_io(
      long ior, long iov, byte read, long address, int fd, long offset, long length, long userdata);

  private static native int hf3fs_submit_ios(long ior);

  private static native int hf3fs_wait_for_ios(
      long ior, long cqes, int cqec, int least, long until);
}

package ucm.store.ds3fs;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.StoreException;

/**
 * 3FS's library of USRBIO, {@code libhf3fs_api_shared.so}: finds and loads it, and has its functions and the layout
 * of what they take, as {@code hf3fs_usrbio.h} of 3FS has them on 64 bits. A process has one: the first that was
 * loaded stays, as a class can be bound to one library only. {@link #require} comes before any function. Structures
 * are handed in by their address, and are of an arena that is closed by hand.
 */
final class UsrbioLibrary {

  static final String FILE_NAME = "libhf3fs_api_shared.so";

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

  private static final List<Path> USUAL_FOLDERS =
      List.of(Path.of("/usr/local/lib"), Path.of("/usr/local/lib64"));

  private static final String LIBRARY_PATH = "LD_LIBRARY_PATH";
  private static final String LINKER_NAME = "hf3fs_api_shared";

  private static @Nullable String loaded;

  private UsrbioLibrary() {}

  /**
   * Loads it, unless it is there. A failure is not remembered.
   *
   * @param configured a file or a folder that holds it; empty to search where libraries are
   * @return where it was found
   * @throws StoreException when there is none, or it cannot be used; says what to do
   */
  static synchronized String require(String configured) {
    String libraryPath = System.getenv(LIBRARY_PATH);
    String found = find(configured, libraryPath, USUAL_FOLDERS);
    String known = loaded;
    if (known != null) {
      if (!configured.isEmpty() && !known.equals(found)) {
        throw new StoreException(
            ("ds3fs_library_path names %s, and this process has loaded %s already; one process uses"
                    + " one: give all stores the same ds3fs_library_path")
                .formatted(found, known));
      }
      return known;
    }
    try {
      Native.register(UsrbioLibrary.class, NativeLibrary.getInstance(found));
    } catch (UnsatisfiedLinkError e) {
      throw unusable(found, e, libraryPath, USUAL_FOLDERS);
    }
    loaded = found;
    return found;
  }

  /** Where there is one, without loading it; empty when it is in no folder that is searched. */
  static Optional<String> installed() {
    String found = find("", System.getenv(LIBRARY_PATH), USUAL_FOLDERS);
    return found.equals(LINKER_NAME) ? Optional.empty() : Optional.of(found);
  }

  /** The file, or the name by which the linker may know it. */
  static String find(String configured, @Nullable String libraryPath, List<Path> usualFolders) {
    if (!configured.isEmpty()) {
      Path path = Path.of(configured);
      Path file = Files.isDirectory(path) ? path.resolve(FILE_NAME) : path;
      if (!Files.isRegularFile(file)) {
        throw new StoreException(
            ("ds3fs_library_path is %s, and there is no file %s: name the file %s of 3FS, or its"
                    + " folder")
                .formatted(configured, file, FILE_NAME));
      }
      return real(file);
    }
    for (Path folder : folders(libraryPath, usualFolders)) {
      Path file = folder.resolve(FILE_NAME);
      if (Files.isRegularFile(file)) {
        return real(file);
      }
    }
    return LINKER_NAME;
  }

  private static String real(Path file) {
    return file.toAbsolutePath().normalize().toString();
  }

  private static List<Path> folders(@Nullable String libraryPath, List<Path> usualFolders) {
    List<Path> folders = new ArrayList<>();
    if (libraryPath != null) {
      for (String folder : libraryPath.split(File.pathSeparator, -1)) {
        if (!folder.isEmpty()) {
          folders.add(Path.of(folder));
        }
      }
    }
    folders.addAll(usualFolders);
    return folders;
  }

  /** Why it could not be loaded, and what to do. */
  static StoreException unusable(
      String found,
      UnsatisfiedLinkError cause,
      @Nullable String libraryPath,
      List<Path> usualFolders) {
    if (found.equals(LINKER_NAME)) {
      return new StoreException(
          ("3FS's library %s was not found in %s nor by the linker: build and install the 3FS"
                  + " client (github.com/deepseek-ai/3FS, by default to /usr/local), or name the"
                  + " library in ds3fs_library_path or its folder in LD_LIBRARY_PATH")
              .formatted(FILE_NAME, folders(libraryPath, usualFolders)),
          cause);
    }
    return new StoreException(
        ("3FS's library %1$s cannot be used: %2$s; it must be built for this machine, and what it"
                + " needs (ldd %1$s) must be installed")
            .formatted(found, cause.getMessage()),
        cause);
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

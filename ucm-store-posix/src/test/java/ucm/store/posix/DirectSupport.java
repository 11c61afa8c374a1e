package ucm.store.posix;

import static org.junit.jupiter.api.Assumptions.abort;

import java.nio.file.Path;
import ucm.api.StoreException;
import ucm.store.common.FileException;
import ucm.store.common.LibcFiles;
import ucm.store.common.UringQueue;

/** Skips tests that need O_DIRECT where the folder of temporary files does not take it. */
final class DirectSupport {

  private DirectSupport() {}

  /** Skips where the kernel does not allow io_uring, as in many containers. */
  static void requireUring() {
    try {
      new UringQueue(1).close();
    } catch (FileException e) {
      abort("needs a kernel that allows io_uring: " + e.getMessage());
    }
  }

  /** Whether the kernel allows io_uring. */
  static boolean hasUring() {
    try {
      new UringQueue(1).close();
      return true;
    } catch (FileException e) {
      return false;
    }
  }

  static boolean isThere(Path directory) {
    try {
      DirectProbe.run(StoreKind.POSIX, new LibcFiles(), directory.toString());
      return true;
    } catch (StoreException e) {
      return false;
    }
  }

  static void require(Path directory) {
    try {
      DirectProbe.run(StoreKind.POSIX, new LibcFiles(), directory.toString());
    } catch (StoreException e) {
      abort("needs a folder of temporary files that takes O_DIRECT: " + e.getMessage());
    }
  }
}

package ucm.device.cuda;

import jcuda.JCudaVersion;
import jcuda.LibUtils;
import org.jspecify.annotations.Nullable;
import ucm.device.DeviceAbsentException;
import ucm.device.DeviceException;

/**
 * Loads JCuda's native library, which is linked against the driver's {@code libcuda.so.1}.
 *
 * <p>It is loaded here before JCuda does it: from the runtime's {@code lib/} or {@code
 * java.library.path}, or not at all. JCuda itself, when it does not find it there, loads a file of that
 * name from the temporary folder, of any owner.
 */
final class CudaLibrary {

  private static final String NAME =
      LibUtils.createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get());
  private static final String SYSTEM_LIBRARY = "libcuda.so.1";

  private static boolean loaded;

  private CudaLibrary() {}

  /**
   * Loads it, once. A failure is not remembered: a driver may be installed later.
   *
   * @throws DeviceAbsentException when there is no driver, or no native library for this machine
   * @throws DeviceException when there is, and it cannot be loaded
   */
  @SuppressWarnings("restricted") // This is the class that loads it.
  static synchronized void require() {
    if (loaded) {
      return;
    }
    try {
      System.loadLibrary(NAME);
      loaded = true;
    } catch (UnsatisfiedLinkError e) {
      throw explain(e.getMessage());
    }
  }

  /** What the dynamic linker said, in words that help. */
  static DeviceException explain(@Nullable String said) {
    String found = String.valueOf(said);
    if (found.contains("java.library.path")) {
      return new DeviceAbsentException(
          "this runtime has no native library of JCuda for this machine ("
              + System.mapLibraryName(NAME)
              + ", which exists for Linux on x86-64): use the image that has it in lib/");
    }
    if (found.contains(SYSTEM_LIBRARY + ": cannot open shared object file")) {
      return new DeviceAbsentException(
          String.format(
              "%s was not found: the NVIDIA driver is not installed, or its "
                  + "library is not on the linker's path; install the driver (in a "
                  + "container, run it with the NVIDIA runtime), or name the library's "
                  + "folder in LD_LIBRARY_PATH",
              SYSTEM_LIBRARY));
    }
    return new DeviceException("the CUDA driver's library could not be loaded: " + found);
  }
}

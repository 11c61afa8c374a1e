package ucm.platform.libc;

import com.sun.jna.Native;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * UCM's own library in C, {@code src/main/c}: the system calls that are made for every file, and the
 * functions of {@code StreamingCopy}. It is in the jar where that was built on x86-64 with a C compiler at
 * hand. Everything works without it, by way of JNA, which takes longer for a call.
 *
 * <p>{@code -Ducm.native_library=off} does without.
 */
public final class OwnLibrary {

  private static final Logger LOG = LoggerFactory.getLogger(OwnLibrary.class);
  private static final String SWITCH = "ucm.native_library";
  private static final String NAME = "ucm_native";

  /** Why it is not used; empty when it is. */
  public static final String MISSING = load();

  /** Whether its functions may be called. */
  public static final boolean IS_LOADED = MISSING.isEmpty();

  private OwnLibrary() {}

  /** How system calls are made for files, and why, for messages. */
  public static String state() {
    return IS_LOADED ? "through UCM's own library" : "through JNA: " + MISSING;
  }

  private static String load() {
    String missing = "";
    if (System.getProperty(SWITCH, "auto").equals("off")) {
      missing = SWITCH + " is off";
    } else {
      try {
        loadFile();
      } catch (IOException | UnsatisfiedLinkError e) {
        missing = "no library " + NAME + ": " + e.getMessage();
      }
    }
    LOG.debug("System calls for files are made {}", missing.isEmpty() ? "directly" : missing);
    return missing;
  }

  /** In an image it lies beside the libraries of Java, as that of JNA does; a jar has it inside. */
  @SuppressWarnings("restricted") // This is the class that loads it.
  private static void loadFile() throws IOException {
    String name = System.mapLibraryName(NAME);
    File inImage = new File(System.getProperty("java.home") + "/lib", name);
    if (inImage.exists()) {
      System.load(inImage.getPath());
      return;
    }
    File found = Native.extractFromResourcePath(NAME, OwnLibrary.class.getClassLoader());
    try {
      System.load(found.getAbsolutePath());
    } finally {
      if (!found.getName().equals(name)) {
        // A copy out of the jar; its name is not needed once it is loaded.
        Files.delete(found.toPath());
      }
    }
  }

  /** A descriptor, or the error number, negated. */
  static native int open(long path, int flags, int mode);

  /** 0, or the error number, negated. */
  static native int close(int fd);

  /** The new position, or the error number, negated. */
  static native long lseek(int fd, long offset, int whence);

  /** How many bytes were read, or the error number, negated. */
  static native long preadv(int fd, long iovec, int count, long offset);

  /** How many bytes were written, or the error number, negated. */
  static native long pwritev(int fd, long iovec, int count, long offset);
}

package ucm.store.posix;

import static org.junit.jupiter.api.Assumptions.abort;

import java.nio.file.Path;
import ucm.api.StoreException;
import ucm.store.common.LibcFiles;

/** Skips tests that need O_DIRECT where the folder of temporary files does not take it. */
final class DirectSupport {

  private DirectSupport() {}

  static void require(Path directory) {
    try {
      DirectProbe.run(new LibcFiles(), directory.toString());
    } catch (StoreException e) {
      abort("needs a folder of temporary files that takes O_DIRECT: " + e.getMessage());
    }
  }
}

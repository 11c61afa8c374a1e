package ucm.api.admin;

import java.nio.file.Path;
import ucm.api.config.StoreConfig;

/**
 * An ability that a storage stage may have: its blocks lie in directories that people can look into,
 * check and clear, also while engines use them.
 *
 * <p>A class that implements {@code Store} and can do this implements this interface as well, and is
 * found the same way. It does not belong to the life of a store: nothing is opened, no thread or
 * memory is held once a call has returned, and {@code Store.configure} is not called.
 */
public interface DirectoryStore {

  /**
   * Whether a directory looks like one of this store and of no other, so that a user need not say which
   * store wrote it. Touches nothing; false when that cannot be told. May be called in any state.
   */
  default boolean recognizes(Path directory) {
    return false;
  }

  /**
   * Names the directories and what is configured about them. May be called in any state; touches no
   * file.
   *
   * @param config holds at least {@code CommonKeys.STORAGE_BACKENDS}. Keys that only engines know, the
   *     layout of blocks above all, lack: what they say must be read from what is there. Faults are
   *     recorded in it, and the result must not be used then
   */
  StoreDirectories directories(StoreConfig config);
}

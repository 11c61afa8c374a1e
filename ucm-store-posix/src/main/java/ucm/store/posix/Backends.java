package ucm.store.posix;

import ucm.api.StoreException;
import ucm.store.common.Errno;
import ucm.store.common.FileException;
import ucm.store.common.FileSeam;
import ucm.store.common.NativePath;

/** Makes the directories of {@code storage_backends} where they are missing. */
final class Backends {

  private Backends() {}

  /**
   * Makes one directory, and those above it.
   *
   * @throws StoreException when that cannot be done, or something else is in its place
   */
  static void prepare(StoreKind kind, FileSeam files, String directory) {
    try {
      make(files, directory);
    } catch (FileException e) {
      throw new StoreException(
          kind.name()
              + " cannot make the directory "
              + directory
              + " of storage_backends: "
              + e.getMessage()
              + "; make it for the user who runs this process, or name another",
          e);
    }
    if (files.size(NativePath.of(directory + "/.")) != FileSeam.OTHER_TYPE) {
      throw new StoreException(
          "storage_backends names "
              + directory
              + ", which is no directory: remove what is there, or name another");
    }
  }

  private static void make(FileSeam files, String directory) {
    try {
      files.makeFolder(NativePath.of(directory));
    } catch (FileException e) {
      if (e.errno() == Errno.ENOTDIR && files.size(NativePath.of(directory)) != FileSeam.ABSENT) {
        // A link, perhaps to a directory, or what is none at all: the caller finds out.
        return;
      }
      int slash = directory.stripTrailing().lastIndexOf('/');
      if (e.errno() != Errno.ENOENT || slash <= 0) {
        throw e;
      }
      make(files, directory.substring(0, slash));
      files.makeFolder(NativePath.of(directory));
    }
  }
}

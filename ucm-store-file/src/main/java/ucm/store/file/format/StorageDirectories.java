package ucm.store.file.format;

import ucm.api.StoreException;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.config.StoreKind;

/** Makes the directories of {@code storage_backends} where they are missing. */
public final class StorageDirectories {

  private StorageDirectories() {}

  /**
   * Makes one directory, and those above it.
   *
   * @throws StoreException when that cannot be done, or something else is in its place
   */
  public static void prepare(StoreKind kind, FileOperations files, String directory) {
    try {
      make(files, directory);
    } catch (FileException e) {
      throw new StoreException(
          ("%s cannot make the directory %s of storage_backends: %s; make it for the user who runs"
                  + " this process, or name another")
              .formatted(kind.name(), directory, e.getMessage()),
          e);
    }
    if (files.size(NativePath.of(directory + "/.")) != FileOperations.OTHER_TYPE) {
      throw new StoreException(
          "storage_backends names %s, which is no directory: remove what is there, or name another"
              .formatted(directory));
    }
  }

  private static void make(FileOperations files, String directory) {
    try {
      files.makeFolder(NativePath.of(directory));
    } catch (FileException e) {
      if (e.errno() == Errno.ENOTDIR
          && files.size(NativePath.of(directory)) != FileOperations.ABSENT) {
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

package ucm.store.file.lease;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;

/**
 * Removes what dead writers left: temporary files, then their {@link WriterLease}. Runs on
 * a thread for each directory when a store opens, and in the rounds of the collector.
 */
public record DeadWriters(
    FileOperations files, BlockPaths paths, StoreMetrics.Counter removedFiles) {

  private static final Logger LOG = LoggerFactory.getLogger(DeadWriters.class);
  // Host, process and number. What has another name is not ours to remove.
  private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9-]+-[0-9]+-[0-9a-f]{1,16}");

  // Five digits make 2^20 folders, each with a line of its own.
  private static final long MOST_JOURNAL_BYTES = 8 << 20;

  /**
   * Removes what dead writers left in the directory of a lease, which is a living one's.
   *
   * @param goesOn is asked before each lease and file
   * @return whether nothing is left that could not be removed
   * @throws FileException when it cannot be read
   */
  public boolean sweep(WriterLease own, BooleanSupplier goesOn) {
    boolean all = true;
    for (String token : others(own)) {
      if (goesOn.getAsBoolean()) {
        all &= bury(own.directory, token, goesOn);
      }
    }
    return all;
  }

  /** Whether stores write to its directory that do not own the lease, living or not removed yet. */
  public boolean hasOthers(WriterLease own) {
    return !others(own).isEmpty();
  }

  private List<String> others(WriterLease own) {
    NativePath leases = paths.inDirectory(own.directory, BlockPaths.WRITERS);
    return files.list(leases).stream()
        .filter(token -> TOKEN.matcher(token).matches() && !own.owns(token))
        .toList();
  }

  private boolean bury(int directory, String token, BooleanSupplier goesOn) {
    NativePath lease = paths.inDirectory(directory, BlockPaths.WRITERS, token);
    // What is no file is no lease: it is left alone.
    int fd = FileLock.open(files, lease);
    try (@Nullable FileLock lock = fd < 0 ? null : FileLock.take(files, fd, lease)) {
      if (lock == null) {
        return true;
      }
      int removed = 0;
      for (String folder : folders(directory, token, fd, lease)) {
        removed += removeOrphans(directory, folder, token, goesOn);
      }
      if (goesOn.getAsBoolean()) {
        files.remove(lease);
        removedFiles.add(removed);
        LOG.info(
            "{} removed {} temporary files of the dead writer {}", paths.store(), removed, token);
      }
      return true;
    } catch (FileException e) {
      LOG.warn(
          "{} cannot clear up after the dead writer {}: {}", paths.store(), token, e.getMessage());
      return false;
    }
  }

  /** Where its temporary files may be: what its lease says, or all folders. */
  private List<String> folders(int directory, String token, int fd, NativePath lease) {
    // No store writes one that large.
    boolean isList = files.size(fd, lease) <= MOST_JOURNAL_BYTES;
    if (!isList) {
      LOG.warn(
          "{} searches all folders for temporary files of the dead writer {}, as {} is larger"
              + " than any list of folders",
          paths.store(),
          token,
          lease);
    } else if (WriterLease.isOfThisBoot(token) || token.startsWith(BlockPaths.PROBE)) {
      return journal(fd, lease);
    }
    List<String> all = new ArrayList<>(files.list(paths.inDirectory(directory, ".")));
    all.removeIf(name -> !BlockPaths.isFolderName(name));
    return all;
  }

  private List<String> journal(int fd, NativePath lease) {
    byte[] text = SmallFile.read(files, fd, lease, files.size(fd, lease));
    // A line cut off by the death of the writer has no temporary files yet.
    return new String(text, StandardCharsets.US_ASCII)
        .lines()
        .filter(BlockPaths::isFolderName)
        .toList();
  }

  private int removeOrphans(int directory, String folder, String token, BooleanSupplier goesOn) {
    String mark = "." + token + "-";
    int removed = 0;
    for (String name : names(directory, folder)) {
      if (!goesOn.getAsBoolean()) {
        break;
      }
      if (name.contains(mark) && name.endsWith(BlockPaths.TEMP_SUFFIX)) {
        removed += files.remove(paths.inDirectory(directory, folder, name)) ? 1 : 0;
      }
    }
    return removed;
  }

  private List<String> names(int directory, String folder) {
    try {
      return files.list(paths.inDirectory(directory, folder));
    } catch (FileException e) {
      if (e.errno() != Errno.ENOTDIR) {
        throw e;
      }
      // A file that has the name of a folder is none of ours.
      return List.of();
    }
  }
}

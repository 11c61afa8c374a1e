package ucm.store.nfs;

import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.ForwardingFileOperations;
import ucm.platform.libc.NativePath;

/**
 * System calls on files of a file server, made sense of. What differs from a local disk:
 *
 * <ul>
 *   <li>A name may lead to a file, or through a folder, that the server has forgotten because another node
 *       removed it (ESTALE). Asked again, the client looks the name up again; if that does not help the file
 *       is absent, which is a miss and no fault. A server that has forgotten everything is found by the
 *       probes of the health check.
 *   <li>A call may have been done although its answer says otherwise or did not come: the server did it,
 *       the answer was lost, and the client asked again, or gave up (soft mounts end with EIO or ETIMEDOUT).
 *       For a rename it matters: see {@link #rename}.
 *   <li>A signal may interrupt any call (EINTR), also those that a local file system finishes.
 * </ul>
 *
 * <p>What needs no care here: attributes and names that a client remembers for some seconds make a block
 * that another node has just committed absent, which is a miss; a file that was removed while a client has
 * it open keeps its bytes under a name that begins with {@code .nfs}, which is no block's; and no decision
 * compares the clock of this machine with times that others wrote, but for which blocks are cold.
 */
final class NfsFiles extends ForwardingFileOperations {

  private static final Logger LOG = LoggerFactory.getLogger(NfsFiles.class);

  NfsFiles(FileOperations calls) {
    super(calls);
  }

  /** Calls once more when the server has forgotten the file, which is absent if that does not help. */
  private static long twice(ToLongFunction<NativePath> call, NativePath path, long absent) {
    try {
      return call.applyAsLong(path);
    } catch (FileException e) {
      requireStale(e);
    }
    return orStale(call, path, absent);
  }

  private static long orStale(ToLongFunction<NativePath> call, NativePath path, long absent) {
    try {
      return call.applyAsLong(path);
    } catch (FileException e) {
      requireStale(e);
      return absent;
    }
  }

  private static void requireStale(FileException e) {
    if (e.errno() != Errno.ESTALE) {
      throw e;
    }
  }

  @Override
  public int openRead(NativePath path) {
    return (int) twice(files::openRead, path, ABSENT);
  }

  @Override
  public int openUnnoticed(NativePath path) {
    return (int) twice(files::openUnnoticed, path, ABSENT);
  }

  @Override
  public int openWrite(NativePath path) {
    return (int) twice(files::openWrite, path, ABSENT);
  }

  /** Creates; a folder that the server has forgotten is missing. */
  @Override
  public int create(NativePath path) {
    return (int) twice(files::create, path, ABSENT);
  }

  @Override
  public long size(NativePath path) {
    return twice(files::size, path, ABSENT);
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    return twice(name -> files.stat(name, into) ? 1 : 0, path, 0) == 1;
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    return orStale(name -> files.touch(name, lastUseNanos) ? 1 : 0, path, 0) == 1;
  }

  /** A file that the server has forgotten has no name any more. */
  @Override
  public long version(int fd, NativePath path) {
    return orStale(name -> files.version(fd, name), path, ABSENT);
  }

  /**
   * Renames. After an error it checks whether that was done all the same: the old name is gone, which is
   * one that no other writer uses, and a file has the new one. Then the rename went well, or another writer of
   * the same block did the same. Where that cannot be found out the error stands.
   */
  @Override
  public void rename(NativePath from, NativePath to) {
    FileException first;
    try {
      files.rename(from, to);
      return;
    } catch (FileException e) {
      first = e;
    }
    try {
      if (files.size(from) >= 0) {
        if (first.errno() != Errno.EINTR && first.errno() != Errno.ESTALE) {
          throw first;
        }
        files.rename(from, to);
      } else if (files.size(to) < 0) {
        throw first;
      }
    } catch (FileException e) {
      if (e != first) {
        first.addSuppressed(e);
      }
      throw first;
    }
    LOG.info("Nfs: done all the same: {}", first.getMessage());
  }

  @Override
  public boolean remove(NativePath path) {
    return again(files::remove, path);
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    return again(files::makeFolder, folder);
  }

  private static boolean again(Predicate<NativePath> call, NativePath path) {
    try {
      return call.test(path);
    } catch (FileException e) {
      if (e.errno() != Errno.EINTR && e.errno() != Errno.ESTALE) {
        throw e;
      }
    }
    return call.test(path);
  }
}

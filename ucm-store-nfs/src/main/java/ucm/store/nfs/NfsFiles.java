package ucm.store.nfs;

import java.util.List;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.IoVector;
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
final class NfsFiles implements FileOperations {

  private static final Logger LOG = LoggerFactory.getLogger(NfsFiles.class);

  private final FileOperations calls;

  NfsFiles(FileOperations calls) {
    this.calls = calls;
  }

  /** Opens in one of several ways. */
  private interface Opening {
    int open(NativePath path);
  }

  private static int open(Opening opening, NativePath path) {
    try {
      return opening.open(path);
    } catch (FileException e) {
      requireStale(e);
    }
    try {
      return opening.open(path);
    } catch (FileException e) {
      requireStale(e);
      return ABSENT;
    }
  }

  private static void requireStale(FileException e) {
    if (e.errno() != Errno.ESTALE) {
      throw e;
    }
  }

  @Override
  public int openRead(NativePath path) {
    return open(calls::openRead, path);
  }

  @Override
  public int openUnnoticed(NativePath path) {
    return open(calls::openUnnoticed, path);
  }

  @Override
  public int openWrite(NativePath path) {
    return open(calls::openWrite, path);
  }

  /** Creates; a folder that the server has forgotten is missing. */
  @Override
  public int create(NativePath path) {
    return open(calls::create, path);
  }

  @Override
  public void setDirect(int fd, NativePath path) {
    calls.setDirect(fd, path);
  }

  @Override
  public long size(NativePath path) {
    try {
      return calls.size(path);
    } catch (FileException e) {
      requireStale(e);
    }
    try {
      return calls.size(path);
    } catch (FileException e) {
      requireStale(e);
      return ABSENT;
    }
  }

  @Override
  public boolean stat(NativePath path, FileStat into) {
    try {
      return calls.stat(path, into);
    } catch (FileException e) {
      requireStale(e);
    }
    try {
      return calls.stat(path, into);
    } catch (FileException e) {
      requireStale(e);
      return false;
    }
  }

  @Override
  public boolean touch(NativePath path, long lastUseNanos) {
    try {
      return calls.touch(path, lastUseNanos);
    } catch (FileException e) {
      requireStale(e);
      return false;
    }
  }

  @Override
  public long size(int fd, NativePath path) {
    return calls.size(fd, path);
  }

  /** A file that the server has forgotten has no name any more. */
  @Override
  public long version(int fd, NativePath path) {
    try {
      return calls.version(fd, path);
    } catch (FileException e) {
      requireStale(e);
      return ABSENT;
    }
  }

  @Override
  public long readAt(int fd, NativePath path, IoVector into, long offset) {
    return calls.readAt(fd, path, into, offset);
  }

  @Override
  public long writeAt(int fd, NativePath path, IoVector from, long offset) {
    return calls.writeAt(fd, path, from, offset);
  }

  @Override
  public void allocate(int fd, NativePath path, long size) {
    calls.allocate(fd, path, size);
  }

  @Override
  public void syncData(int fd, NativePath path) {
    calls.syncData(fd, path);
  }

  @Override
  public void syncFolder(NativePath folder) {
    calls.syncFolder(folder);
  }

  @Override
  public void close(int fd, NativePath path) {
    calls.close(fd, path);
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
      calls.rename(from, to);
      return;
    } catch (FileException e) {
      first = e;
    }
    try {
      if (calls.size(from) >= 0) {
        if (first.errno() != Errno.EINTR && first.errno() != Errno.ESTALE) {
          throw first;
        }
        calls.rename(from, to);
      } else if (calls.size(to) < 0) {
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
    try {
      return calls.remove(path);
    } catch (FileException e) {
      if (e.errno() != Errno.EINTR && e.errno() != Errno.ESTALE) {
        throw e;
      }
    }
    return calls.remove(path);
  }

  @Override
  public boolean makeFolder(NativePath folder) {
    try {
      return calls.makeFolder(folder);
    } catch (FileException e) {
      if (e.errno() != Errno.EINTR && e.errno() != Errno.ESTALE) {
        throw e;
      }
    }
    return calls.makeFolder(folder);
  }

  @Override
  public boolean tryLock(int fd, NativePath path) {
    return calls.tryLock(fd, path);
  }

  @Override
  public List<String> list(NativePath folder) {
    return calls.list(folder);
  }

  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    calls.forEachName(folder, visitor);
  }
}

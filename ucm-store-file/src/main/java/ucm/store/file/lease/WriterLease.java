package ucm.store.file.lease;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;

/**
 * This store's lease on the temporary files it writes in one directory.
 *
 * <p>It is a file {@code .writers/<token>}, locked for as long as the store lives; the kernel (or the
 * file server) drops the lock when its process dies, however it dies. The token is part of the names
 * of the store's temporary files, so that one lock tells of all of them whether their writer still writes
 * them: see {@link DeadWriters}. The file lists the folders in which the store has written, one name a
 * line, so that the orphans of a dead writer are found without a walk through the whole tree. The list
 * is not synced; the token tells of which boot of the machine it is, so that no store relies on a list
 * that a loss of power may have cut off.
 *
 * <p>Made when the first block is written: a store that only reads leaves no trace. Thread-safe.
 */
public final class WriterLease {

  private static final Logger LOG = LoggerFactory.getLogger(WriterLease.class);
  private static final int ATTEMPTS = 16;
  private static final int MAX_HOST_LENGTH = 32;
  private static final int HEX_DIGITS_OF_INT = 8;
  // Empty where the kernel does not tell.
  private static final String BOOT = kernelText("random/boot_id", "").split("-", 2)[0];

  private final FileOperations files;
  private final BlockPaths paths;
  final int directory;

  // Guarded by this; token is read without it.
  private final BitSet folders = new BitSet();
  private @Nullable FileLock held;
  private long journalSize;
  private volatile byte @Nullable [] token;
  private volatile boolean isStillNeeded;

  public WriterLease(FileOperations files, BlockPaths paths, int directory) {
    this.files = files;
    this.paths = paths;
    this.directory = directory;
  }

  /**
   * Makes sure that the lease is there and names a block's folder.
   *
   * @return the token, in ASCII
   * @throws FileException when the lease cannot be written
   */
  public byte[] cover(long idHigh) {
    int folder = paths.folderNumber(idHigh);
    synchronized (this) {
      byte[] current = token;
      if (current == null) {
        current = lease();
        token = current;
      }
      if (!folders.get(folder)) {
        files.requireOwn(paths.folder(new NativePath(), directory, idHigh));
        note(paths.folderName(idHigh));
        folders.set(folder);
      }
      return current;
    }
  }

  public boolean owns(String name) {
    byte[] current = token;
    return current != null && name.equals(text(current));
  }

  /** A temporary file stays: then the lease stays as well, and leads the next start to it. */
  public void keepFile() {
    isStillNeeded = true;
  }

  /**
   * Gives the lease up, once nothing is written any more. Its file goes when no temporary file is left;
   * else it stays, unlocked, as that of a dead writer.
   */
  public synchronized void release() {
    FileLock lease = held;
    if (lease == null) {
      return;
    }
    try {
      if (!isStillNeeded) {
        files.remove(lease.path());
      }
    } catch (FileException e) {
      LOG.warn(
          "{} cannot remove its lease; the next start will: {}", paths.store(), e.getMessage());
    }
    lease.close();
    token = null;
    held = null;
  }

  private byte[] lease() {
    files.makeFolder(paths.inDirectory(directory, BlockPaths.WRITERS));
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      byte[] candidate = newToken().getBytes(StandardCharsets.US_ASCII);
      NativePath path = path(candidate);
      int opened = files.create(path);
      if (opened == FileOperations.ABSENT) {
        throw new FileException("open", path, Errno.ENOENT);
      }
      boolean isLocked = false;
      try {
        isLocked = lock(opened, path);
      } finally {
        if (!isLocked) {
          files.close(opened, path);
        }
      }
      if (isLocked) {
        held = new FileLock(files, opened, path);
        journalSize = 0;
        return candidate;
      }
    }
    throw new FileException("lock", path(new byte[] {'*'}), Errno.EAGAIN);
  }

  /** False when a process that removes the leases of the dead was faster than the lock. */
  private boolean lock(int opened, NativePath path) {
    try {
      return files.tryLock(opened, path) && files.size(path) >= 0;
    } catch (FileException e) {
      if (e.errno() != Errno.ENOLCK && e.errno() != Errno.EOPNOTSUPP) {
        files.remove(path);
        throw e;
      }
      // No process can take a lock here, so none will take our files for those of a dead writer.
      LOG.warn(
          "{} leaves temporary files of dead writers alone: {}", paths.store(), e.getMessage());
      return true;
    }
  }

  private void note(String folder) {
    FileLock lease = Objects.requireNonNull(held);
    String line = folder + "\n";
    SmallFile.write(files, lease.fd(), lease.path(), line, journalSize);
    journalSize += line.length();
  }

  private NativePath path(byte[] of) {
    return paths.inDirectory(directory, BlockPaths.WRITERS, text(of));
  }

  private static String text(byte[] token) {
    return new String(token, StandardCharsets.US_ASCII);
  }

  /** Host and process are for messages; the random number makes it unique among those of one boot. */
  private static String newToken() {
    return String.format(
        "%s-%s-%s%s",
        host(),
        ProcessHandle.current().pid(),
        BOOT,
        HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt()));
  }

  /**
   * Whether a token is of a writer that this boot of this machine has seen. Else the power may have
   * failed since, and what its lease says about folders may be lost.
   */
  static boolean isOfThisBoot(String token) {
    return !BOOT.isEmpty() && token.startsWith(BOOT, token.length() - 2 * HEX_DIGITS_OF_INT);
  }

  /** The name of this machine, in letters, digits and dashes; for messages. */
  public static String host() {
    // Not by InetAddress, which may ask a name server.
    String host = kernelText("hostname", "host").replaceAll("[^A-Za-z0-9]", "-");
    return host.substring(0, Math.min(host.length(), MAX_HOST_LENGTH));
  }

  private static String kernelText(String name, String otherwise) {
    try {
      return Files.readString(Path.of("/proc/sys/kernel", name)).strip();
    } catch (IOException e) {
      return otherwise;
    }
  }
}

package ucm.store.file.lease;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;

/**
 * The process that holds, or held, the lease of {@link CollectorLease}, for messages: a line in the
 * locked file. It decides nothing; the lock does.
 */
public final class LeaseHolder {

  /** Bytes of the line, always as many, so that a shorter one leaves nothing of a longer one. */
  private static final int LINE_BYTES = 64;

  private static final Pattern LINE = Pattern.compile("process ([0-9]{1,10}) on ([^ ]+) *\n");

  private LeaseHolder() {}

  /** The line of this process. */
  static String line() {
    String text = "process " + ProcessHandle.current().pid() + " on " + WriterLease.host();
    return text + " ".repeat(LINE_BYTES - 1 - text.length()) + "\n";
  }

  /** Names the process that collects in a directory. */
  public static String describe(FileOperations files, String root) {
    String path = root + "/" + BlockPaths.GC + "/" + CollectorLease.LOCK;
    String who = who(files, NativePath.of(path));
    return switch (WriterLocks.lock(files, path)) {
      case LIVING -> who;
      case DEAD -> "none";
      case UNKNOWN -> "cannot be asked; the last one known is " + who;
    };
  }

  private static String who(FileOperations files, NativePath file) {
    try {
      byte[] bytes = SmallFile.read(files, file, LINE_BYTES);
      if (bytes == null) {
        return "a process that does not tell its name";
      }
      Matcher line = LINE.matcher(new String(bytes, StandardCharsets.US_ASCII));
      if (!line.matches()) {
        return "a process that does not tell its name";
      }
      String found = "process " + line.group(1) + " on " + line.group(2);
      if (!line.group(2).equals(WriterLease.host())) {
        return found;
      }
      boolean lives = ProcessHandle.of(Long.parseLong(line.group(1))).isPresent();
      return found + (lives ? ", which lives" : ", which is not seen from here");
    } catch (FileException e) {
      return "a process that cannot be told";
    }
  }
}

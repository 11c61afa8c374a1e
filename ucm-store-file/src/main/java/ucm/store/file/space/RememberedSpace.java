package ucm.store.file.space;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.SmallFile;
import ucm.store.file.format.BlockPaths;

/**
 * The bytes used at the end of the collector's last round, in {@code .gc/used} of the first directory:
 * a start takes them for true until its own scan has ended. Not thread-safe; only the holder of the
 * lease writes.
 */
public final class RememberedSpace {

  private static final Logger LOG = LoggerFactory.getLogger(RememberedSpace.class);
  private static final Pattern CONTENT = Pattern.compile("1 ([0-9]{1,18})\n");
  private static final String NAME = "used";
  private static final String NEXT = "used.next";
  private static final int NOTHING = -1;
  private static final int MOST_BYTES = 64;

  private final FileOperations files;
  private final BlockPaths paths;
  private long written = NOTHING;

  public RememberedSpace(FileOperations files, BlockPaths paths) {
    this.files = files;
    this.paths = paths;
  }

  /** The bytes remembered, 0 when there is nothing, or nothing that can be read. */
  public long read() {
    try {
      byte[] bytes = SmallFile.read(files, path(NAME), MOST_BYTES);
      if (bytes == null) {
        return 0;
      }
      Matcher content = CONTENT.matcher(new String(bytes, StandardCharsets.US_ASCII));
      return content.matches() ? Long.parseLong(content.group(1)) : 0;
    } catch (FileException e) {
      LOG.warn("{} cannot read how much space was used: {}", paths.store(), e.getMessage());
      return 0;
    }
  }

  /** Writes them, unless they are there. */
  public void write(long used) {
    if (used == written) {
      return;
    }
    try {
      NativePath next = path(NEXT);
      // Left by a collector that died here.
      files.remove(next);
      int fd = files.create(next);
      if (fd < 0) {
        return;
      }
      try {
        SmallFile.write(files, fd, next, "1 " + used + "\n", 0);
      } finally {
        files.close(fd, next);
      }
      files.rename(next, path(NAME));
      written = used;
    } catch (FileException e) {
      LOG.debug("{} cannot note how much space is used: {}", paths.store(), e.getMessage());
    }
  }

  private NativePath path(String name) {
    return paths.inDirectory(new NativePath(), 0, BlockPaths.GC, name);
  }
}

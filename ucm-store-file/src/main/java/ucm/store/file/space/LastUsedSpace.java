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
 * The bytes used at the end of the collector's last round, in {@code .gc/used} of the first directory: a start takes
 * them for true until its own scan has ended. Only the holder of the lease writes them.
 */
public final class LastUsedSpace {

  private static final Logger LOG = LoggerFactory.getLogger(LastUsedSpace.class);
  private static final Pattern CONTENT = Pattern.compile("1 ([0-9]{1,18})\n");
  private static final String NAME = "used";
  private static final String NEXT = "used.next";
  private static final int NOTHING = -1;
  private static final int MOST_BYTES = 64;

  private final FileOperations files;
  private final BlockPaths paths;
  private final UsedSpace used;
  private long written = NOTHING;

  public LastUsedSpace(FileOperations files, BlockPaths paths, UsedSpace used) {
    this.files = files;
    this.paths = paths;
    this.used = used;
  }

  /** Takes up what was used at the end of the last process, if that can be read. */
  public void restore() {
    try {
      byte[] bytes = SmallFile.read(files, path(NAME), MOST_BYTES);
      Matcher content =
          CONTENT.matcher(bytes == null ? "" : new String(bytes, StandardCharsets.US_ASCII));
      if (content.matches()) {
        used.remember(Long.parseLong(content.group(1)));
      }
    } catch (FileException e) {
      LOG.warn("{} cannot read how much space was used: {}", paths.store(), e.getMessage());
    }
  }

  /** Writes how much is used now, unless that is there. */
  public void remember() {
    long now = used.used();
    if (now == written) {
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
        SmallFile.write(files, fd, next, "1 " + now + "\n", 0);
      } finally {
        files.close(fd, next);
      }
      files.rename(next, path(NAME));
      written = now;
    } catch (FileException e) {
      LOG.debug("{} cannot note how much space is used: {}", paths.store(), e.getMessage());
    }
  }

  private NativePath path(String name) {
    return paths.inDirectory(0, BlockPaths.GC, name);
  }
}

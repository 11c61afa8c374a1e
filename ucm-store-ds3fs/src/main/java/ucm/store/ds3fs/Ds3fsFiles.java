package ucm.store.ds3fs;

import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Predicate;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.ForwardingFileOperations;
import ucm.platform.libc.NativePath;
import ucm.store.file.format.BlockPaths;

/**
 * Ordinary system calls through the mount. A file that is being written lies in the original's folder
 * for those, {@code <directory>/.temp}, although a store of files thinks it is in the folder of its block;
 * and a file's registration with USRBIO is taken back before it is closed. Thread-safe.
 */
final class Ds3fsFiles extends ForwardingFileOperations {

  /** Folder, within a directory, of files that are being written. */
  static final String TEMP_FOLDER = ".temp";

  private static final byte[] TEMP = (TEMP_FOLDER + "/").getBytes(StandardCharsets.US_ASCII);
  private static final byte[] SUFFIX = BlockPaths.TEMP_SUFFIX.getBytes(StandardCharsets.US_ASCII);
  private static final int ID_DIGITS = 32;

  private final RegisteredFiles registered;
  private final ThreadLocal<NativePath> moved = ThreadLocal.withInitial(NativePath::new);
  private final ThreadLocal<NativePath> temps = ThreadLocal.withInitial(NativePath::new);

  Ds3fsFiles(FileOperations files, RegisteredFiles registered) {
    super(files);
    this.registered = registered;
  }

  @Override
  protected NativePath map(NativePath path) {
    int end = path.length();
    int name = path.slashBefore(end) + 1;
    int folder = name == 0 ? 0 : path.slashBefore(name - 1) + 1;
    if (folder == 0 || path.byteAt(folder) == '.' || !isTemp(path, name, end)) {
      return path;
    }
    return moved.get().set(path, folder).append(TEMP).append(path, name, end);
  }

  /** A temporary file of ours has its writer's name after the digits. */
  private static boolean isTemp(NativePath path, int name, int end) {
    return end - name > ID_DIGITS + SUFFIX.length
        && path.byteAt(name + ID_DIGITS) == '.'
        && path.has(SUFFIX, end - SUFFIX.length);
  }

  /** A file being written is made and removed in a folder of ours only, not through a link. */
  @Override
  public boolean remove(NativePath path) {
    return files.remove(ownPath(path));
  }

  private NativePath ownPath(NativePath path) {
    NativePath mapped = map(path);
    if (mapped != path) {
      files.requireOwn(temps.get().set(mapped, mapped.slashBefore(mapped.length())));
    }
    return mapped;
  }

  @Override
  public int create(NativePath path) {
    NativePath mapped = ownPath(path);
    int fd = files.create(mapped);
    if (fd == ABSENT && mapped != path) {
      files.makeFolder(folderOf(mapped));
      fd = files.create(mapped);
    }
    return fd;
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    NativePath mapped = map(from);
    try {
      files.rename(mapped, to);
    } catch (FileException e) {
      if (e.errno() != Errno.ENOENT || mapped == from || files.size(mapped) < 0) {
        throw e;
      }
      // The first block of its folder.
      NativePath folder = folderOf(to);
      if (files.makeFolder(folder)) {
        files.syncFolder(folderOf(folder));
      }
      files.rename(mapped, to);
    }
  }

  private static NativePath folderOf(NativePath path) {
    return new NativePath().set(path, path.slashBefore(path.length()));
  }

  @Override
  public void close(int fd, NativePath path) {
    registered.deregister(fd);
    files.close(fd, map(path));
  }

  /**
   * Shows files that are being written in the folder of their block, and in their directory the folder
   * that will be theirs.
   */
  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    Set<String> shown = new HashSet<>();
    boolean[] isOver = new boolean[1];
    files.forEachName(
        folder,
        name -> {
          if (name.length() <= TEMP_FOLDER.length()) {
            shown.add(name);
          }
          isOver[0] = !visitor.test(name);
          return !isOver[0];
        });
    String path = folder.toString();
    String digits = path.substring(path.lastIndexOf('/') + 1);
    if (isOver[0]) {
      return;
    }
    if (shown.contains(TEMP_FOLDER)) {
      NativePath temps = NativePath.of(path + "/" + TEMP_FOLDER);
      forEachTemp(temps, "", name -> showFolder(name, shown, visitor));
    } else if (digits.length() == Ds3fsConfig.FOLDER_DIGITS) {
      forEachTemp(folderOf(folder).append('/').append(TEMP_FOLDER), digits, visitor);
    }
  }

  private static boolean showFolder(
      String temp, Set<String> shown, Predicate<? super String> visitor) {
    String folder = temp.substring(0, Ds3fsConfig.FOLDER_DIGITS);
    return !shown.add(folder) || visitor.test(folder);
  }

  /** Shows the files being written whose names begin with some digits. */
  private void forEachTemp(NativePath temps, String digits, Predicate<? super String> visitor) {
    NativePath path = new NativePath();
    files.forEachName(
        temps,
        name -> {
          path.set("/x/").append(name);
          return !name.startsWith(digits) || map(path) == path || visitor.test(name);
        });
  }
}

package ucm.store.nfs;

import java.io.File;
import java.util.HexFormat;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.ForwardingFileOperations;
import ucm.platform.libc.NativePath;

/**
 * The tree of the original's NFS store, under the names of one with a single folder.
 *
 * <p>The store of files names a block {@code data/<32 digits>} and a file being written {@code
 * data/<32 digits>.<writer>-<number>.tmp}. In the original's tree a block has a folder of its first half and
 * a file of its second, each half written as a little-endian number:
 *
 * <pre>
 *   data/00112233445566778899aabbccddeeff            data/7766554433221100/ffeeddccbbaa9988.dat
 *   data/00112233445566778899aabbccddeeff.w-1.tmp    data/7766554433221100/ffeeddccbbaa9988.w-1.act
 * </pre>
 *
 * <p>So nearly every block has a folder to itself. It is made with the first file in it, and removed with
 * the last, if the file server has none hidden there ({@code .nfs*}). Where it is removed between the two
 * steps of a writer, the writer makes it again. Whatever has other names passes through as it is.
 * Thread-safe.
 */
final class NfsTree extends ForwardingFileOperations {

  private static final byte[] DATA = {'/', 'd', 'a', 't', 'a'};
  private static final byte[] TEMP = {'.', 't', 'm', 'p'};
  private static final int WORD_DIGITS = 16;
  private static final int ID_DIGITS = 2 * WORD_DIGITS;
  private static final int ATTEMPTS = 4;
  private static final Pattern FOLDER = Pattern.compile("[0-9a-f]{16}");
  private static final Pattern FILE =
      Pattern.compile("([0-9a-f]{16})(?:\\.dat|((?:\\..+)?)\\.act)");
  // A file that was removed while it is open.
  private static final String HIDDEN = ".nfs";

  private static final class Scratch {
    private final NativePath first = new NativePath();
    private final NativePath second = new NativePath();
  }

  private static final ThreadLocal<Scratch> SCRATCH = ThreadLocal.withInitial(Scratch::new);

  NfsTree(FileOperations files) {
    super(files);
  }

  static boolean isBlockFolder(String name) {
    return FOLDER.matcher(name).matches();
  }

  static String realName(String path) {
    return at(NativePath.of(path), SCRATCH.get().first).toString();
  }

  @Override
  protected NativePath map(NativePath path) {
    return at(path, SCRATCH.get().first);
  }

  /** The file's real name; the path itself where that is the same. */
  private static NativePath at(NativePath path, NativePath into) {
    int start = nameStart(path);
    int end = path.length();
    if (start < 0) {
      return path;
    }
    int rest = start + ID_DIGITS;
    boolean isTemp = rest < end;
    if (isTemp && !(path.byteAt(rest) == '.' && path.has(TEMP, end - TEMP.length))) {
      return path;
    }
    folder(path, start, into).append('/');
    into.appendHex(Long.reverseBytes(word(path, start + WORD_DIGITS)), WORD_DIGITS);
    return isTemp ? into.append(path, rest, end - TEMP.length).append(".act") : into.append(".dat");
  }

  /** Names the folder of the file whose name begins at {@code start}. */
  private static NativePath folder(NativePath path, int start, NativePath into) {
    return into.set(path, start).appendHex(Long.reverseBytes(word(path, start)), WORD_DIGITS);
  }

  /** Where the 32 digits begin; -1 when this is no file in {@code data} whose name begins so. */
  private static int nameStart(NativePath path) {
    int slash = path.slashBefore(path.length());
    int start = slash + 1;
    boolean fits = path.length() - start >= ID_DIGITS && path.has(DATA, slash - DATA.length);
    for (int i = start; fits && i < start + ID_DIGITS; i++) {
      fits = HexFormat.isHexDigit(path.byteAt(i));
    }
    return fits ? start : -1;
  }

  private static long word(NativePath path, int start) {
    long word = 0;
    for (int i = start; i < start + WORD_DIGITS; i++) {
      word = word << 4 | HexFormat.fromHexDigit(path.byteAt(i));
    }
    return word;
  }

  @Override
  public int create(NativePath path) {
    int fd = files.create(map(path));
    int start = fd == ABSENT ? nameStart(path) : -1;
    for (int attempt = 0; start >= 0 && fd == ABSENT && attempt < ATTEMPTS; attempt++) {
      NativePath folder = SCRATCH.get().second;
      // The folder of all first, without the slash; once in the life of a directory, so never
      // unsynced.
      if (files.makeFolder(folder.set(path, start - 1))) {
        files.syncFolder(folder.set(path, start - 1 - DATA.length).append("/."));
      }
      files.makeFolder(folder(path, start, folder));
      fd = files.create(map(path));
    }
    return fd;
  }

  /** Of a block, the entries of its own folder, and of that of all blocks. */
  @Override
  public void syncName(NativePath file) {
    int start = nameStart(file);
    if (start >= 0) {
      files.syncFolder(folder(file, start, SCRATCH.get().second));
    }
    super.syncName(file);
  }

  @Override
  public void rename(NativePath from, NativePath to) {
    Scratch scratch = SCRATCH.get();
    files.rename(at(from, scratch.first), at(to, scratch.second));
    if (nameStart(to) < 0) {
      removeFolderOf(from);
    }
  }

  @Override
  public boolean remove(NativePath path) {
    boolean removed = files.remove(map(path));
    removeFolderOf(path);
    return removed;
  }

  /** Removes the folder of a file that left it, unless another file is in it. */
  private static void removeFolderOf(NativePath path) {
    int start = nameStart(path);
    if (start >= 0) {
      // Nothing depends on it.
      var _ = new File(folder(path, start, SCRATCH.get().second).toString()).delete();
    }
  }

  /** Hands out the names that the files of blocks go by here; those of other files with their folder. */
  @Override
  public void forEachName(NativePath folder, Predicate<? super String> visitor) {
    String path = folder.toString();
    String data = path.endsWith("/.") ? path.substring(0, path.length() - 2) : path;
    if (!data.endsWith("/data")) {
      files.forEachName(folder, visitor);
      return;
    }
    boolean[] goesOn = {true};
    files.forEachName(
        folder,
        name -> {
          if (isBlockFolder(name)) {
            forEachFile(data, name, visitor, goesOn);
          } else {
            goesOn[0] = visitor.test(name);
          }
          return goesOn[0];
        });
  }

  private void forEachFile(
      String data, String folder, Predicate<? super String> visitor, boolean[] goesOn) {
    long high = Long.reverseBytes(HexFormat.fromHexDigitsToLong(folder));
    files.forEachName(
        NativePath.of(data + "/" + folder),
        name -> {
          if (!name.startsWith(HIDDEN)) {
            goesOn[0] = visitor.test(seenAs(high, folder, name));
          }
          return goesOn[0];
        });
  }

  private static String seenAs(long high, String folder, String name) {
    Matcher file = FILE.matcher(name);
    if (!file.matches()) {
      return folder + "/" + name;
    }
    long low = Long.reverseBytes(HexFormat.fromHexDigitsToLong(file.group(1)));
    String rest = file.group(2);
    HexFormat hex = HexFormat.of();
    return hex.toHexDigits(high) + hex.toHexDigits(low) + (rest == null ? "" : rest + ".tmp");
  }
}

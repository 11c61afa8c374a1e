package ucm.store.file.format;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.NativePath;

/**
 * Where the file of a block is: {@code <directory>/<first digits of the id>/<32 digits of the id>}.
 *
 * <p>The tree is that of the original store, so that a directory written by it can be used, and the
 * other way round. A name is made of digits only: no block id can lead out of the tree. Beside the
 * folders of blocks, a directory holds folders of this store whose names begin with a dot, which no
 * block folder does: {@code .writers}, {@code .quarantine} and {@code .gc}. Immutable and thread-safe.
 */
public final class BlockPaths {

  /** Folder, within a directory, of the leases of writers. */
  public static final String WRITERS = ".writers";

  /** How the names of the files in it begin that try out the directory. */
  public static final String PROBE = "probe-";

  /** Folder, within a directory, of files that were found damaged. */
  public static final String QUARANTINE = ".quarantine";

  /** Folder, within a directory, of what the collectors of several processes share. */
  public static final String GC = ".gc";

  /** Folder, within a directory, where the connector keeps which blocks engines have disowned. */
  public static final String GENERATIONS = ".generations";

  /** The end of the name of a file that is being written. */
  public static final String TEMP_SUFFIX = ".tmp";

  /** The folder of all blocks when folders are not named by digits. */
  public static final String SINGLE_FOLDER = "data";

  private static final int MAX_FOLDER_DIGITS = 5;
  private static final Pattern BLOCK_NAME = Pattern.compile("[0-9a-f]{32}");
  private static final Pattern FOLDER_NAME = Pattern.compile("data|[0-9a-f]{1,5}");
  private static final Pattern HEX = Pattern.compile("[0-9a-f]*");
  private static final int WORD_DIGITS = 16;

  // std::hash of libstdc++ is MurmurHash64A with this seed.
  private static final long HASH_SEED = 0xc70f6907L;
  private static final long HASH_MULTIPLIER = 0xc6a4a7935bd1e995L;
  // The product with the length, 16 bytes, modulo 2 to the 64.
  private static final long HASH_START = HASH_SEED ^ (HASH_MULTIPLIER << 4);

  private final String store;
  private final List<String> directories;
  private final byte[][] prefixes;
  private final int folderDigits;
  private final int slotsPerDirectory;

  /**
   * The tree below some directories.
   *
   * @param store the name of the store that keeps blocks there, for messages
   * @param directories the directories; their order matters, as the hash of an id counts them
   * @param folderDigits digits of the id that name a block's folder, 0 to 5; 0 puts all blocks into
   *     one folder {@code data}
   */
  public BlockPaths(String store, List<String> directories, int folderDigits) {
    Objects.checkIndex(folderDigits, MAX_FOLDER_DIGITS + 1);
    if (directories.isEmpty()) {
      throw new IllegalArgumentException("blocks need at least one directory; found none");
    }
    this.store = store;
    this.directories = List.copyOf(directories);
    this.folderDigits = folderDigits;
    this.slotsPerDirectory = (1 << (4 * folderDigits)) + 1;
    this.prefixes = new byte[directories.size()][];
    for (int i = 0; i < prefixes.length; i++) {
      prefixes[i] = (directories.get(i) + "/").getBytes(StandardCharsets.UTF_8);
    }
  }

  /** The name of the store that keeps blocks there, for messages. */
  public String store() {
    return store;
  }

  /** The directories. */
  public List<String> directories() {
    return directories;
  }

  /** Which of the directories holds a block. */
  public int directoryOf(long idHigh, long idLow) {
    return prefixes.length == 1
        ? 0
        : (int) Long.remainderUnsigned(hash(idHigh, idLow), prefixes.length);
  }

  /** Names the file of a block. */
  public NativePath block(NativePath into, long idHigh, long idLow) {
    folder(into, directoryOf(idHigh, idLow), idHigh).append('/');
    return into.appendHex(idHigh, WORD_DIGITS).appendHex(idLow, WORD_DIGITS);
  }

  /** Names the folder of a block within a directory. */
  public NativePath folder(NativePath into, int directory, long idHigh) {
    into.set(prefixes[directory]);
    return folderDigits == 0 ? into.append(SINGLE_FOLDER) : into.appendHex(idHigh, folderDigits);
  }

  /** The name of a block's folder within its directory. */
  public String folderName(long idHigh) {
    return folderDigits == 0
        ? SINGLE_FOLDER
        : HexFormat.of().toHexDigits(idHigh).substring(0, folderDigits);
  }

  /** Whether a folder of blocks may have this name, whatever the number of digits. */
  public static boolean isFolderName(String name) {
    return FOLDER_NAME.matcher(name).matches();
  }

  /** Whether the file of a whole block may have this name, which is its id. */
  public static boolean isBlockName(String name) {
    return BLOCK_NAME.matcher(name).matches();
  }

  /** A number for the folder of a block, from 0 to 16^digits - 1. */
  public int folderNumber(long idHigh) {
    return folderDigits == 0 ? 0 : (int) (idHigh >>> (64 - 4 * folderDigits));
  }

  /** How many folders there can be in all directories, of blocks and quarantines; each has a slot. */
  public int slots() {
    return firstSlot(directories.size());
  }

  /** The first slot of a directory; its quarantine has the last. */
  public int firstSlot(int directory) {
    return slotsPerDirectory * directory;
  }

  /** The slot of a block's folder. */
  public int slot(long idHigh, long idLow) {
    return firstSlot(directoryOf(idHigh, idLow)) + folderNumber(idHigh);
  }

  /** The directory that a slot is in. */
  public int directoryOf(int slot) {
    return slot / slotsPerDirectory;
  }

  /** Whether a folder holds blocks, and not those in quarantine. */
  public boolean holdsBlocks(Folder folder) {
    return folder.slot() != firstSlot(folder.directory() + 1) - 1;
  }

  /**
   * The folders that are there now in one directory.
   *
   * @throws FileException when it is gone or cannot be read
   */
  public List<Folder> folders(FileOperations files, int directory) {
    String root = directories.get(directory);
    NativePath path = NativePath.of(root + "/.");
    if (files.size(path) == FileOperations.ABSENT) {
      // Not to be taken for one that holds nothing.
      throw new FileException("opendir", path, Errno.ENOENT);
    }
    List<Folder> folders = new ArrayList<>();
    for (String name : files.list(path)) {
      int number = slotWithin(name);
      if (number >= 0) {
        folders.add(new Folder(directory, firstSlot(directory) + number, root + "/" + name));
      }
    }
    return folders;
  }

  /** The slot of a folder, counted from the first one of its directory; -1 for what is no folder of ours. */
  private int slotWithin(String name) {
    if (name.equals(QUARANTINE)) {
      return slotsPerDirectory - 1;
    }
    if (folderDigits == 0) {
      return name.equals(SINGLE_FOLDER) ? 0 : -1;
    }
    boolean isOurs = name.length() == folderDigits && HEX.matcher(name).matches();
    return isOurs ? Integer.parseInt(name, 16) : -1;
  }

  /** Names something directly in a directory, by parts joined with {@code /}. */
  public NativePath inDirectory(int directory, String... parts) {
    NativePath into = new NativePath().set(prefixes[directory]);
    for (int i = 0; i < parts.length; i++) {
      (i == 0 ? into : into.append('/')).append(parts[i]);
    }
    return into;
  }

  /**
   * The hash that chooses a directory: {@code std::hash<std::string_view>} of libstdc++ over the 16
   * bytes of an id.
   */
  static long hash(long idHigh, long idLow) {
    long hash = HASH_START;
    // It reads little-endian words; ids are big-endian ones.
    hash = mixed(hash, Long.reverseBytes(idHigh));
    hash = mixed(hash, Long.reverseBytes(idLow));
    hash = shifted(hash) * HASH_MULTIPLIER;
    return shifted(hash);
  }

  private static long mixed(long hash, long word) {
    return (hash ^ shifted(word * HASH_MULTIPLIER) * HASH_MULTIPLIER) * HASH_MULTIPLIER;
  }

  private static long shifted(long value) {
    return value ^ (value >>> 47);
  }

  @Override
  public String toString() {
    return "BlockPaths" + directories;
  }
}

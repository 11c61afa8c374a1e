package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.admin.ReadRateLimit;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.FileStat;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.VectorIo;
import ucm.store.file.admin.FoundDirectory.BlockFile;
import ucm.store.file.format.BlockFooter;
import ucm.store.file.format.StoredFooter;

/**
 * The file of a block, open to be inspected without knowing its layout. Inspection does not
 * count as use. Not thread-safe.
 */
final class BlockInspection implements AutoCloseable {

  private static final String CHANGED = "it was changed or removed while it was read";

  private final FileOperations files;
  private final BlockFile file;
  private final NativePath path;
  private final MemorySegment memory;
  private final FileStat stat;
  private final int fd;
  private @Nullable StoredFooter footer;
  private @Nullable String fault;

  private BlockInspection(
      FileOperations files,
      BlockFile file,
      NativePath path,
      MemorySegment memory,
      FileStat stat,
      int fd) {
    this.files = files;
    this.file = file;
    this.path = path;
    this.memory = memory;
    this.stat = stat;
    this.fd = fd;
  }

  /**
   * Opens a file and reads its footer.
   *
   * @param memory a buffer to read through, of some pages
   * @return null when there is no file, for example no more
   * @throws ucm.platform.libc.FileException when it cannot be read
   */
  static @Nullable BlockInspection at(FileOperations files, BlockFile file, MemorySegment memory) {
    NativePath name = NativePath.of(file.path());
    FileStat stat = new FileStat();
    if (!files.stat(name, stat) || !stat.isFile()) {
      return null;
    }
    int fd = files.openUnnoticed(name);
    if (fd < 0) {
      return null;
    }
    BlockInspection inspection = new BlockInspection(files, file, name, memory, stat, fd);
    try {
      inspection.readFooter();
      return inspection;
    } catch (RuntimeException e) {
      inspection.close();
      throw e;
    }
  }

  private void readFooter() {
    long size = stat.size();
    int tail = (int) Math.min(StoredFooter.TAIL_BYTES, size);
    ByteBuffer bytes = read(size - tail, tail);
    try {
      int length = StoredFooter.byteSize(bytes, size);
      if (length > 0) {
        bytes = length == tail ? bytes : read(size - length, length);
        footer = StoredFooter.read(bytes, size, file.idHigh(), file.idLow());
      }
    } catch (StoredFooter.Fault e) {
      fault = e.getMessage();
    }
  }

  /** Reads a part, all of it unless the file was cut off meanwhile. */
  private ByteBuffer read(long offset, int bytes) {
    boolean fits = bytes <= memory.byteSize();
    MemorySegment part = fits ? memory.asSlice(0, bytes) : Arena.ofAuto().allocate(bytes);
    long got = VectorIo.readFully(files, fd, path, new IoVector().add(part), offset);
    return part.asSlice(0, got).asByteBuffer();
  }

  BlockFile file() {
    return file;
  }

  FileStat stat() {
    return stat;
  }

  /** The layout in its footer; null without a footer that can be trusted. */
  @Nullable StoredLayout layout() {
    return footer == null ? null : footer.layout();
  }

  /** What is wrong with its footer; null when it is right, or there is none. */
  @Nullable String fault() {
    return fault;
  }

  /** What people are told of it. */
  StoredBlock stored(String directory) {
    StoredLayout layout = layout();
    return new StoredBlock(
        file.idHigh(),
        file.idLow(),
        directory,
        layout == null ? stat.size() : layout.blockSize(),
        stat.allocatedBytes(),
        layout,
        DirectorySurvey.time(stat.lastUseNanos()),
        fault);
  }

  /**
   * Reads the block and compares its checksums.
   *
   * @return what is wrong first, or null when the bytes are those that were written
   */
  @Nullable String verify(ReadRateLimit limit) {
    StoredFooter known = footer;
    if (known == null) {
      return fault;
    }
    StoredLayout layout = known.layout();
    CRC32C crc = new CRC32C();
    for (int shard = 0; shard < layout.shardCount(); shard++) {
      String wrong = digest(shard, layout.shardSize(), crc, limit);
      wrong = wrong != null ? wrong : known.fault(shard, (int) crc.getValue());
      if (wrong != null) {
        return wrong;
      }
    }
    return null;
  }

  /** Takes the checksum of a shard; says why when its bytes are not all there. */
  private @Nullable String digest(int shard, long shardSize, CRC32C crc, ReadRateLimit limit) {
    crc.reset();
    long offset = shard * shardSize;
    long end = offset + shardSize;
    while (offset < end) {
      int wanted = (int) Math.min(memory.byteSize(), end - offset);
      limit.take(wanted);
      ByteBuffer bytes = read(offset, wanted);
      if (bytes.limit() < wanted) {
        return "it ended after " + (offset + bytes.limit()) + " bytes while it was read";
      }
      crc.update(bytes);
      offset += wanted;
    }
    return null;
  }

  /**
   * Writes a footer after a block that has none, with the checksums of its bytes. The access time stays.
   *
   * @return why it was not written, or null when it was
   */
  @Nullable String seal(BlockFooter format, ReadRateLimit limit) {
    BlockLayout layout = format.layout();
    int[] crcs = new int[layout.shardCount()];
    CRC32C crc = new CRC32C();
    for (int shard = 0; shard < crcs.length; shard++) {
      String wrong = digest(shard, layout.shardSize(), crc, limit);
      if (wrong != null) {
        return wrong;
      }
      crcs[shard] = (int) crc.getValue();
    }
    BlockFooter.Buffer written = format.newBuffer();
    format.write(written, file.idHigh(), file.idLow(), crcs);
    int out = isStillThere() ? files.openWrite(path) : FileOperations.ABSENT;
    if (out < 0) {
      return CHANGED;
    }
    try {
      if (files.size(out, path) != layout.blockSize()) {
        return CHANGED;
      }
      IoVector bytes = new IoVector().add(written.segment());
      VectorIo.writeFully(files, out, path, bytes, format.offset());
    } finally {
      files.close(out, path);
    }
    files.touch(path, stat.lastUseNanos());
    return null;
  }

  /** Whether its name still means this very file, unchanged: an engine may have replaced it. */
  boolean isStillThere() {
    FileStat found = new FileStat();
    return files.stat(path, found)
        && found.inode() == stat.inode()
        && found.size() == stat.size()
        && found.changedNanos() == stat.changedNanos();
  }

  @Override
  public void close() {
    files.close(fd, path);
  }
}

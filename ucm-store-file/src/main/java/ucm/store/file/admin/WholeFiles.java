package ucm.store.file.admin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.TreeSet;
import ucm.api.StoreException;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.WholeBlocks;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.NativePath;
import ucm.platform.libc.VectorIo;
import ucm.store.file.config.StoreKind;
import ucm.store.file.format.BlockPaths;
import ucm.store.file.format.StoredFooter;

/**
 * Whole blocks of directories. A file is written under a name that engines and collectors take for that of a
 * writer who cannot be asked, and gets its own when all of it is on the device. Thread-safe.
 */
final class WholeFiles implements WholeBlocks {

  /** As engines make it in a directory that is empty. */
  private static final int USUAL_DIGITS = 3;

  private final FileOperations files;
  private final BlockPaths paths;

  WholeFiles(StoreKind kind, FileOperations files, List<FoundDirectory> found) {
    this.files = files;
    TreeSet<Integer> digits = new TreeSet<>();
    found.forEach(directory -> digits.addAll(directory.digits()));
    List<String> roots = found.stream().map(FoundDirectory::root).toList();
    if (digits.size() > 1) {
      throw new StoreException(
          "folders of %s have names of %s digits: data_dir_shard_bytes was changed, and which is right is not known"
              .formatted(roots, digits));
    }
    paths = new BlockPaths(kind.name(), roots, digits.isEmpty() ? USUAL_DIGITS : digits.first());
  }

  private NativePath path(StoredBlock block) {
    return paths.block(new NativePath(), block.idHigh(), block.idLow());
  }

  @Override
  public boolean holds(StoredBlock block) {
    // Its footer is read, as it may be a file of the original, or of another layout.
    try (Arena arena = Arena.ofConfined()) {
      FoundDirectory.BlockFile file =
          new FoundDirectory.BlockFile("", path(block).toString(), block.idHigh(), block.idLow());
      try (var inspection =
          BlockInspection.at(files, file, arena.allocate(StoredFooter.TAIL_BYTES, 4096))) {
        return inspection != null
            && block.layout() != null
            && block.layout().equals(inspection.layout());
      }
    }
  }

  @Override
  public WholeBlock read(StoredBlock block) {
    NativePath path = path(block);
    int fd = files.openUnnoticed(path);
    if (fd < 0) {
      return new WholeBlock(null, null);
    }
    try {
      long size = files.size(fd, path);
      if (size < 0 || size > Integer.MAX_VALUE) {
        return new WholeBlock(null, "it has " + size + " bytes, and less than 2 GiB can be copied");
      }
      MemorySegment memory = Arena.ofAuto().allocate(size, 4096);
      long got = VectorIo.readFully(files, fd, path, new IoVector().add(memory), 0);
      ByteBuffer bytes = memory.asSlice(0, got).asByteBuffer();
      var _ = StoredFooter.verified(bytes, block.idHigh(), block.idLow());
      return new WholeBlock(bytes, null);
    } catch (StoredFooter.Fault e) {
      return new WholeBlock(null, e.getMessage());
    } catch (FileException e) {
      return new WholeBlock(null, e.getMessage());
    } finally {
      files.close(fd, path);
    }
  }

  @Override
  public void write(StoredBlock block, ByteBuffer bytes) {
    int directory = paths.directoryOf(block.idHigh(), block.idLow());
    var _ = files.makeFolder(paths.folder(new NativePath(), directory, block.idHigh()));
    NativePath path = path(block);
    NativePath writing = NativePath.of(path + BlockPaths.TEMP_SUFFIX);
    // Of a copy that was killed.
    var _ = files.remove(writing);
    int fd = files.create(writing);
    try {
      try {
        VectorIo.writeFully(
            files, fd, writing, new IoVector().add(MemorySegment.ofBuffer(bytes)), 0);
        files.syncData(fd, writing);
      } finally {
        files.close(fd, writing);
      }
      files.rename(writing, path);
      files.syncName(path);
    } catch (RuntimeException e) {
      try {
        var _ = files.remove(writing);
      } catch (FileException removal) {
        e.addSuppressed(removal);
      }
      throw new StoreException(
          "cannot write the block "
              + block.id()
              + ": "
              + e.getMessage()
              + "; what is copied by now stays, and the same command goes on from there",
          e);
    }
  }

  @Override
  public void close() {
    // No file is open between calls.
  }
}

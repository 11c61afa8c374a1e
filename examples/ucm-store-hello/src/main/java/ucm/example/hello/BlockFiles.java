package ucm.example.hello;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.BitSet;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Transfer;

/**
 * One file a block. Shards are written into a temporary file, which gets the block's name when all of
 * them are there: so a name that is there is a whole block, whatever was killed.
 */
final class BlockFiles {

  private record Unfinished(Path temporary, BitSet shards) {}

  private final Path folder;
  private final BlockLayout layout;
  private final boolean sync;
  private final String writer = UUID.randomUUID().toString();
  private final Map<String, Unfinished> unfinished = new ConcurrentHashMap<>();

  public BlockFiles(HelloConfig config) {
    layout = config.layout();
    sync = config.sync();
    // A block of another layout is a miss, so each layout has a folder.
    folder = config.directory().resolve(Integer.toHexString(layout.hashCode()));
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw new StoreException("Hello cannot make hello_directory " + folder + ": " + e, e);
    }
  }

  boolean has(BlockIds ids, int i) {
    return Files.exists(folder.resolve(ids.hex(i)));
  }

  /** Whether the block is gone; false when the file system refuses. */
  boolean remove(BlockIds ids, int i) {
    try {
      Files.deleteIfExists(folder.resolve(ids.hex(i)));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  ShardOutcome read(Transfer transfer, int shard) throws IOException {
    Path path = folder.resolve(transfer.ids().hex(shard));
    try (FileChannel file = FileChannel.open(path, READ)) {
      return file.size() == layout.blockSize() && move(file, transfer, shard, true)
          ? ShardOutcome.OK
          : ShardOutcome.CORRUPT;
    } catch (NoSuchFileException e) {
      return ShardOutcome.MISSING;
    }
  }

  ShardOutcome write(Transfer transfer, int shard) throws IOException {
    String id = transfer.ids().hex(shard);
    Unfinished block =
        unfinished.computeIfAbsent(
            id, _ -> new Unfinished(folder.resolve(id + "." + writer), new BitSet()));
    synchronized (block) {
      if (Files.exists(folder.resolve(id))) {
        unfinished.remove(id, block);
        return ShardOutcome.OK;
      }
      try (FileChannel file = FileChannel.open(block.temporary(), CREATE, WRITE)) {
        move(file, transfer, shard, false);
        block.shards().set(transfer.shardIndex(shard));
        if (block.shards().cardinality() == layout.shardCount()) {
          if (sync) {
            file.force(true);
          }
          Files.move(block.temporary(), folder.resolve(id), StandardCopyOption.ATOMIC_MOVE);
          unfinished.remove(id, block);
          // For a thread that still holds this one: nothing of it is in a temporary file any more.
          block.shards().clear();
        }
      }
      return ShardOutcome.OK;
    }
  }

  private boolean move(FileChannel file, Transfer transfer, int shard, boolean load)
      throws IOException {
    long at = transfer.shardIndex(shard) * layout.shardSize();
    for (int segment = 0; segment < transfer.pieceCount(); segment++) {
      ByteBuffer memory =
          transfer
              .region(shard, segment)
              .segment()
              .asSlice(transfer.offset(shard, segment), transfer.pieceSize(segment))
              .asByteBuffer();
      while (memory.hasRemaining()) {
        int moved = load ? file.read(memory, at) : file.write(memory, at);
        if (moved < 0) {
          return false;
        }
        at += moved;
      }
    }
    return true;
  }

  int unfinished() {
    return unfinished.size();
  }

  void close() {
    for (Unfinished block : unfinished.values()) {
      try {
        Files.deleteIfExists(block.temporary());
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}

package ucm.example.hello;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.ShardOutcome;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics.Counter;
import ucm.api.StoreName;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;

/**
 * Keeps each block in a file. Shards are written into a temporary file, which gets the block's name when
 * all of them are there: so a name that is there is a whole block, whatever was killed.
 */
@StoreName("Hello")
public final class HelloStore extends AbstractStore {

  private static final ConfigKey<String> DIRECTORY =
      ConfigKey.text("hello_directory").require().doc("Directory that holds the blocks.");

  private static final ConfigKey<Integer> THREADS =
      ConfigKey.integer("hello_threads")
          .range(1, 256)
          .defaultTo(4)
          .unit("threads")
          .doc("Threads that read and write files.");

  private static final ConfigKey<Boolean> SYNC =
      ConfigKey.flag("hello_sync")
          .defaultTo(false)
          .doc("Whether a block shall also survive a power loss, which costs a flush of the disk.");

  private final String writer = UUID.randomUUID().toString();
  // The shards that are in the temporary file of a block.
  private final Map<String, BitSet> unfinished = new ConcurrentHashMap<>();
  private Path folder;
  private Executor workers;
  private Counter loadedBytes;
  private Counter dumpedBytes;

  @Override
  public List<ConfigKey<?>> configKeys() {
    return CommonKeys.with(DIRECTORY, THREADS, SYNC);
  }

  @Override
  protected void doOpen(StoreContext context) throws IOException {
    // A block of another layout is a miss, so each layout has a folder.
    folder = Path.of(value(DIRECTORY), Integer.toHexString(layout().hashCode()));
    Files.createDirectories(folder);
    loadedBytes = context.metrics().counter("hello_loaded_bytes", "Bytes read from files");
    dumpedBytes = context.metrics().counter("hello_dumped_bytes", "Bytes written to files");
    workers = newWorkers("io", value(THREADS));
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    BitSet found = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, Files.exists(folder.resolve(ids.hex(i))));
    }
    return found;
  }

  @Override
  protected void doLoad(TransferTask task) {
    workers.execute(() -> task.moveAll(this::read));
  }

  @Override
  protected void doDump(TransferTask task) {
    workers.execute(() -> task.moveAll(this::write));
  }

  private ShardOutcome read(Transfer transfer, int shard) throws IOException {
    Path path = folder.resolve(transfer.ids().hex(shard));
    try (FileChannel file = FileChannel.open(path, READ)) {
      if (file.size() != layout().blockSize() || !move(file, transfer, shard, true)) {
        return ShardOutcome.CORRUPT;
      }
      loadedBytes.add(layout().shardSize());
      return ShardOutcome.OK;
    } catch (NoSuchFileException e) {
      return ShardOutcome.MISSING;
    }
  }

  private ShardOutcome write(Transfer transfer, int shard) throws IOException {
    String id = transfer.ids().hex(shard);
    BitSet shards = unfinished.computeIfAbsent(id, _ -> new BitSet());
    synchronized (shards) {
      if (Files.exists(folder.resolve(id))) {
        unfinished.remove(id, shards);
        return ShardOutcome.OK;
      }
      try (FileChannel file = FileChannel.open(temporary(id), CREATE, WRITE)) {
        move(file, transfer, shard, false);
        shards.set(transfer.shardIndex(shard));
        if (shards.cardinality() == layout().shardCount()) {
          if (value(SYNC)) {
            file.force(true);
          }
          Files.move(temporary(id), folder.resolve(id), ATOMIC_MOVE);
          unfinished.remove(id);
          // For a thread that still holds these: the temporary file is gone.
          shards.clear();
        }
      }
    }
    dumpedBytes.add(layout().shardSize());
    return ShardOutcome.OK;
  }

  private Path temporary(String id) {
    return folder.resolve(id + "." + writer);
  }

  /** Moves the segments of a shard; false when the file ends too early. */
  private boolean move(FileChannel file, Transfer transfer, int shard, boolean load)
      throws IOException {
    long at = transfer.shardIndex(shard) * layout().shardSize();
    for (int segment = 0; segment < transfer.pieceCount(); segment++) {
      ByteBuffer memory = transfer.segment(shard, segment).asByteBuffer();
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

  @Override
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending) {
    unfinished.keySet().forEach(id -> pending.add(BlockIds.ofHex(id)));
  }

  @Override
  public BitSet durable(BlockIds ids) {
    return lookup(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    BitSet gone = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      File file = folder.resolve(ids.hex(i)).toFile();
      gone.set(i, file.delete() || !file.exists());
    }
    return gone;
  }

  @Override
  protected void doClose() throws IOException {
    for (String id : unfinished.keySet()) {
      Files.deleteIfExists(temporary(id));
    }
  }
}

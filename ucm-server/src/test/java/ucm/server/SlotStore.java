package ucm.server;

import com.carrotsearch.hppc.LongHashSet;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.BitSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.connector.WorkerConnector.SkippedSaves;
import ucm.server.protocol.EngineFields;
import ucm.server.protocol.FrameReader;
import ucm.server.protocol.HelloMessage;
import ucm.server.protocol.IdentityMessage;
import ucm.server.protocol.MessageType;
import ucm.server.protocol.WorkerFields;
import ucm.server.protocol.WorkerFields.OpenedWorkerMessage;

/**
 * The slots that a rank shares with the daemon, as a store: a worker connector loads from them what a plan
 * promised, and dumps into them what the daemon is to store. The ids of blocks are those of {@link
 * #name}. The calling thread copies. When all layers of a promise or a save have been copied, or a save is
 * left out, the daemon is told.
 *
 * <p>A mapping outlives the daemon, so that what was promised can be loaded when it is gone.
 */
@StoreName("Slots")
final class SlotStore implements Store, SkippedSaves {

  private static final int KEPT_GENERATIONS = 2;

  /** A segment of some generation, in this process until the arena is closed. */
  record Mapping(int generation, Arena arena, MemorySegment memory, int slots, long stride) {}

  private final int rank;
  private final DaemonLink link;
  private final AtomicLong tasks = new AtomicLong();
  // Guarded by this: the link's thread adds to it.
  private final Map<Integer, Mapping> mappings = new LinkedHashMap<>();
  private volatile int generation;

  SlotStore(Path socket, EngineFields engine, IdentityMessage identity, WorkerFields worker) {
    rank = worker.rank();
    link =
        new DaemonLink(
            socket,
            HelloMessage.WORKER,
            "worker-" + rank,
            daemon -> {
              daemon.tell(MessageType.IDENTIFY, to -> to.record(identity));
              FrameReader answer =
                  daemon.call(
                      MessageType.OPEN_WORKER,
                      to -> worker.write(to.record(engine)),
                      MessageType.OPENED_WORKER);
              keep(map(answer.record(OpenedWorkerMessage.class)));
            });
  }

  /**
   * Blocks in slots.
   *
   * @param number the daemon's, of the hold or save
   * @param slots one a block; -1 where nothing is promised, so that a load of it fails
   */
  static BlockIds name(int generation, long number, int[] slots) {
    long[] words = new long[2 * slots.length];
    for (int i = 0; i < slots.length; i++) {
      words[2 * i] = (long) generation << Integer.SIZE | Integer.toUnsignedLong(slots[i]);
      words[2 * i + 1] = number;
    }
    return BlockIds.wrap(words);
  }

  /**
   * Maps a segment.
   *
   * @throws IOException when the file is not that which the daemon made
   */
  static Mapping map(OpenedWorkerMessage opened) throws IOException {
    Path path = Path.of(opened.path());
    Map<String, Object> found = Daemon.requirePrivate(path);
    long bytes = opened.slots() * opened.stride();
    if (!Objects.equals(found.get("size"), opened.byteSize())
        || !Objects.equals(found.get("ino"), opened.inode())
        || bytes > opened.byteSize()) {
      throw new IOException(path + " is not the segment that the daemon made");
    }
    Arena arena = Arena.ofShared();
    try (FileChannel file =
        FileChannel.open(
            path, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
      MemorySegment memory = file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
      return new Mapping(opened.generation(), arena, memory, opened.slots(), opened.stride());
    } catch (IOException | RuntimeException e) {
      arena.close();
      throw e;
    }
  }

  private synchronized void keep(Mapping mapping) {
    Mapping same = mappings.remove(mapping.generation);
    mappings.put(mapping.generation, mapping);
    if (same != null) {
      same.arena.close();
    }
    Iterator<Mapping> oldest = mappings.values().iterator();
    while (mappings.size() > KEPT_GENERATIONS) {
      oldest.next().arena.close();
      oldest.remove();
    }
    generation = mapping.generation;
  }

  @Override
  public Task load(Transfer transfer) {
    return copy(transfer, false);
  }

  @Override
  public Task dump(Transfer transfer) {
    return copy(transfer, true);
  }

  private Task copy(Transfer transfer, boolean save) {
    if (!transfer.isHost()) {
      throw new StoreException(
          "the KV cache of a rank that uses the daemon is host memory; serve ranks on devices as"
              + " threads of one process, with ConnectorSetup");
    }
    TransferTask task = new TransferTask(tasks.incrementAndGet(), transfer);
    LongHashSet copied = new LongHashSet();
    LongHashSet failed = new LongHashSet();
    BlockIds ids = transfer.ids();
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      int of = (int) (ids.high(shard) >>> Integer.SIZE);
      boolean well = copy(transfer, shard, save, of, (int) ids.high(shard));
      if (transfer.shardIndex(shard) == transfer.layout().shardCount() - 1) {
        if (of == generation) {
          (well ? copied : failed).add(ids.low(shard));
        } else if (!save && !well) {
          // Numbers of another session may be given again in this one. That something failed is
          // told all the same: number 0 is never given.
          failed.add(0);
        }
      }
      if (well) {
        task.ok(shard);
      } else {
        task.end(shard, ShardOutcome.FAILED, new StoreException("slots are gone"));
      }
    }
    copied.removeAll(failed);
    report(save ? MessageType.SAVED : MessageType.LOADED, copied.toArray(), failed.toArray());
    return task;
  }

  private synchronized boolean copy(Transfer transfer, int shard, boolean save, int of, int slot) {
    Mapping mapping = mappings.get(of);
    if (mapping == null || slot < 0 || slot >= mapping.slots) {
      return false;
    }
    long inSlots =
        slot * mapping.stride + transfer.shardIndex(shard) * transfer.layout().shardSize();
    for (int piece = 0; piece < transfer.pieceCount(); piece++) {
      MemorySegment engine = transfer.region(shard, piece).segment();
      long inEngine = transfer.offset(shard, piece);
      long bytes = transfer.pieceSize(piece);
      if (save) {
        MemorySegment.copy(engine, inEngine, mapping.memory, inSlots, bytes);
      } else {
        MemorySegment.copy(mapping.memory, inSlots, engine, inEngine, bytes);
      }
      inSlots += bytes;
    }
    return true;
  }

  @Override
  public void skipped(BlockIds ids) {
    LongHashSet numbers = new LongHashSet();
    for (int i = 0; i < ids.size(); i++) {
      if ((int) (ids.high(i) >>> Integer.SIZE) == generation) {
        numbers.add(ids.low(i));
      }
    }
    report(MessageType.SAVED, new long[0], numbers.toArray());
  }

  private void report(int type, long[] well, long[] not) {
    DaemonConnection daemon = link.get();
    if (daemon != null && well.length + not.length > 0) {
      try {
        daemon.tell(type, to -> to.longs(well).longs(not));
      } catch (IOException e) {
        link.lost(daemon, e);
      }
    }
  }

  /** Nothing is looked up here: the scheduler side asks the daemon. */
  @Override
  public BitSet lookup(BlockIds ids) {
    return new BitSet();
  }

  /** What was dumped is the daemon's, which stores it when it ends. */
  @Override
  public FlushResult flush(Duration timeout) {
    return FlushResult.clean();
  }

  @Override
  public List<ConfigKey<?>> configKeys() {
    return List.of();
  }

  @Override
  public void configure(StoreConfig config) {
    // The daemon has the configuration.
  }

  @Override
  public void open(StoreContext context) {
    // It is open from the beginning.
  }

  @Override
  public void close() {
    link.close();
    synchronized (this) {
      mappings.values().forEach(mapping -> mapping.arena.close());
      mappings.clear();
    }
  }

  /** For example {@code slots of rank 0}. */
  @Override
  public String toString() {
    return "slots of rank " + rank;
  }
}

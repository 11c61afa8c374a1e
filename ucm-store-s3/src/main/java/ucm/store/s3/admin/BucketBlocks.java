package ucm.store.s3.admin;

import static java.util.stream.Collectors.groupingBy;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.admin.WholeBlocks;
import ucm.store.file.format.StoredFooter;
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ClientSettings;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectList;
import ucm.store.s3.client.ObjectList.Listed;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.store.s3.client.ObjectRequest.Sink;

/**
 * The blocks below a prefix as people use them, whatever their layouts: each request waits for its answer, and what is
 * refused is an error. The folder of a layout is named by its checksum, so the footer of one of its objects tells the
 * layout of all. Thread-safe.
 */
final class BucketBlocks implements WholeBlocks {

  /** An object with the name of a block. */
  record BlockObject(Listed entry, String folder, long high, long low) {

    String id() {
      return BlockIds.hex(high, low);
    }

    String key() {
      return entry.key();
    }

    long size() {
      return entry.size();
    }
  }

  /** What is below the prefix: blocks in the order of their keys, and the keys of all else. */
  record Listing(List<BlockObject> blocks, List<String> others) {}

  private static final int TRIES = 4;
  // Blocks of a folder, of which none has a footer, until it is taken for one without.
  private static final int MOST_ASKED = 100;
  private static final Duration CLOSE = Duration.ofSeconds(5);

  private final ObjectClient client;
  private final ClientSettings settings;
  private final String prefix;
  private final long nanos;
  private final ObjectList list;
  // By the folder of a layout; of what is no layout, or could not be told, there is none.
  private final Map<String, StoredLayout> layouts = new ConcurrentHashMap<>();
  // By block, with all its layouts; listed when it is first asked what is here.
  private @Nullable Map<String, List<BlockObject>> present;

  /**
   * Connects when something is asked for.
   *
   * @param nanos how long a request may take
   */
  BucketBlocks(ClientSettings settings, String prefix, long nanos) {
    this.settings = settings;
    this.prefix = prefix;
    this.nanos = nanos;
    this.client =
        new ObjectClient(
            settings,
            task -> Thread.ofPlatform().daemon().name("ucm-s3-admin-timer").unstarted(task),
            System::nanoTime);
    this.list = new ObjectList(client, prefix, nanos);
  }

  /** What an object is called, or the place of all when there is no key. */
  String address(String key) {
    return "s3://" + settings.bucket() + "/" + key;
  }

  /** Sends a request, once more where no server answered; and takes only what a server did, or that it has none. */
  ObjectReply send(ObjectRequest request) {
    ObjectReply reply = client.send(request, nanos).join();
    for (int i = 1; i < TRIES && isWorthTrying(reply); i++) {
      reply = client.send(request, nanos).join();
    }
    if (!reply.ok() && !reply.isMissing()) {
      throw new StoreException(
          "%s of the bucket %s at %s failed: %s; `ucm doctor` says more"
              .formatted(request, settings.bucket(), settings.endpoints(), reply.describe()));
    }
    return reply;
  }

  private static boolean isWorthTrying(ObjectReply reply) {
    return reply.isSlowDown()
        || reply.end() == ObjectReply.End.BROKEN
        || reply.end() == ObjectReply.End.LATE;
  }

  /**
   * The last bytes of an object, as many as there is room for.
   *
   * @param into gets them; new, and flipped
   */
  ObjectReply read(BlockObject block, ByteBuffer into) {
    long length = Math.min(block.size(), into.capacity());
    long from = block.size() - length;
    ObjectReply reply =
        send(
            // No range is empty.
            length == 0
                ? ObjectRequest.head(block.key())
                : ObjectRequest.get(block.key(), from, length, Sink.into(into)));
    into.flip();
    return reply;
  }

  /** Lists all objects, until it is stopped; all but the lease of a collector. */
  Listing listing(BooleanSupplier stopped) {
    Listing found = new Listing(new ArrayList<>(), new ArrayList<>());
    try {
      var _ =
          list.each(
              entry -> {
                BlockObject block = block(entry);
                if (block != null) {
                  found.blocks.add(block);
                } else if (!entry.key().equals(prefix + BucketCollector.LEASE)) {
                  found.others.add(entry.key());
                }
                return !stopped.getAsBoolean();
              });
    } catch (StoreException e) {
      throw failed(e);
    }
    return found;
  }

  /** Removes some objects. */
  void remove(List<BlockObject> some) {
    try {
      for (int from = 0; from < some.size(); from += ObjectList.PAGE) {
        int to = Math.min(some.size(), from + ObjectList.PAGE);
        list.remove(some.subList(from, to).stream().map(BlockObject::key).toList());
      }
    } catch (StoreException e) {
      throw failed(e);
    }
  }

  private StoreException failed(StoreException e) {
    return new StoreException(
        "bucket %s at %s: %s; `ucm doctor` says more"
            .formatted(settings.bucket(), settings.endpoints(), e.getMessage()),
        e);
  }

  private @Nullable BlockObject block(Listed entry) {
    Matcher name = ObjectFormat.BLOCK.matcher(entry.key().substring(prefix.length() + 1));
    if (!name.matches() || !name.group(3).startsWith(name.group(2))) {
      return null;
    }
    BlockIds id = BlockIds.ofHex(name.group(3));
    return new BlockObject(entry, name.group(1), id.high(0), id.low(0));
  }

  /** Lists all objects, until it is stopped, and learns the layouts of their folders. */
  Listing layouts(BooleanSupplier stopped) {
    Listing found = listing(stopped);
    Map<String, Integer> asked = new HashMap<>();
    for (BlockObject block : found.blocks) {
      if (!layouts.containsKey(block.folder())
          && asked.merge(block.folder(), 1, Integer::sum) <= MOST_ASKED
          && !stopped.getAsBoolean()) {
        learn(block);
      }
    }
    return found;
  }

  /** The layout of the other blocks in the folder of one; null when none of them tells. */
  @Nullable StoredLayout layoutThere(BlockObject block) {
    return layouts.get(block.folder());
  }

  /** The layout of a block with checksums; null when it has none, as far as its size tells. */
  @Nullable StoredLayout layout(BlockObject block) {
    StoredLayout there = layoutThere(block);
    return there == null || there.blockSize() == block.size() ? null : there;
  }

  private void learn(BlockObject block) {
    ByteBuffer tail = ByteBuffer.allocate(StoredFooter.TAIL_BYTES);
    var _ = read(block, tail);
    int length = StoredFooter.byteSize(tail);
    if (length == 0 || length > block.size()) {
      return;
    }
    if (length > tail.limit()) {
      tail = ByteBuffer.allocate(length);
      var _ = read(block, tail);
    }
    try {
      StoredFooter footer = StoredFooter.read(tail, block.size(), block.high(), block.low());
      layouts.put(block.folder(), footer.layout());
    } catch (StoredFooter.Fault _) {
      // Another one tells.
    }
  }

  /** A block as people see it. */
  StoredBlock stored(BlockObject block) {
    StoredLayout layout = layout(block);
    long size = block.size();
    String fault = null;
    if (layout != null && size != StoredFooter.fileSize(layout)) {
      fault =
          "it has %s bytes, others of its layout %s".formatted(size, StoredFooter.fileSize(layout));
    }
    return new StoredBlock(
        block.high(),
        block.low(),
        address(prefix) + "/" + block.folder(),
        layout == null ? size : layout.blockSize(),
        size,
        layout,
        block.entry().modified(),
        fault);
  }

  @Override
  public boolean holds(StoredBlock block) {
    StoredLayout layout = block.layout();
    return layout != null
        && present().getOrDefault(block.id(), List.of()).stream()
            .filter(here -> here.size() == StoredFooter.fileSize(layout))
            .anyMatch(
                here -> {
                  ObjectReply reply = send(ObjectRequest.head(here.key()));
                  return reply.objectSize() == here.size()
                      && reply.ok()
                      && !ObjectFormat.isBare(reply);
                });
  }

  private synchronized Map<String, List<BlockObject>> present() {
    Map<String, List<BlockObject>> all = present;
    if (all == null) {
      all = listing(() -> false).blocks().stream().collect(groupingBy(BlockObject::id));
      present = all;
    }
    return all;
  }

  @Override
  public WholeBlock read(StoredBlock block) {
    String folder = block.directory().substring(address(prefix).length() + 1);
    String key = WholeObject.key(prefix, folder, block.id());
    Listed entry = new Listed(key, block.lastUse(), block.usedBytes());
    return read(new BlockObject(entry, folder, block.idHigh(), block.idLow()));
  }

  /** Reads an object, and compares it with its checksums. */
  WholeBlock read(BlockObject block) {
    long size = block.size();
    if (size > Integer.MAX_VALUE) {
      return new WholeBlock(null, "it has " + size + " bytes, and less than 2 GiB can be read");
    }
    ByteBuffer bytes = ByteBuffer.allocateDirect((int) size);
    ObjectReply reply = read(block, bytes);
    if (reply.isMissing()) {
      return new WholeBlock(null, null);
    }
    if (bytes.limit() < size) {
      return new WholeBlock(null, "it has " + bytes.limit() + " bytes, listed were " + size);
    }
    try {
      WholeObject object = new WholeObject(bytes, block.high(), block.low());
      return ObjectFormat.isBare(reply) || object.matches(reply)
          ? new WholeBlock(bytes, null)
          : new WholeBlock(null, "its metadata are those of other bytes");
    } catch (StoredFooter.Fault e) {
      return new WholeBlock(null, e.getMessage());
    }
  }

  @Override
  public void write(StoredBlock block, ByteBuffer bytes) {
    try {
      WholeObject object = new WholeObject(bytes, block.idHigh(), block.idLow());
      if (!send(object.put(object.key(prefix))).ok()) {
        throw new StoreException("there is no such bucket: create it first");
      }
    } catch (StoredFooter.Fault e) {
      throw new StoreException("the block " + block.id() + " is not stored: " + e.getMessage(), e);
    }
  }

  @Override
  public void close() {
    client.close(CLOSE);
  }
}

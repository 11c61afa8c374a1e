package ucm.store.s3.admin;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.api.admin.WholeBlocks;
import ucm.store.file.format.StoredFooter;
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ObjectList.Listed;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * The blocks below a prefix, whatever their layouts. The folder of a layout is named by its checksum, so the footer of
 * one of its objects tells the layout of all. Thread-safe.
 */
final class BucketBlocks implements WholeBlocks {

  /** An object with the name of a block. */
  record BlockObject(Listed entry, String folder, long high, long low) {

    String id() {
      return BlockIds.hex(high, low);
    }
  }

  private static final Pattern NAME = Pattern.compile("([0-9a-f]{8})/([0-9a-f]{3})/([0-9a-f]{32})");

  private final BucketAccess bucket;
  private final String prefix;
  private final String place;
  // By the folder of a layout; of what is no layout, or could not be told, there is none.
  private final Map<String, StoredLayout> layouts = new ConcurrentHashMap<>();
  // By block, with all its layouts; listed when it is first asked what is here.
  private @Nullable Map<String, List<Listed>> present;

  BucketBlocks(BucketAccess bucket, String prefix) {
    this.bucket = bucket;
    this.prefix = prefix;
    this.place = "s3://" + bucket.name() + "/" + prefix;
  }

  String place() {
    return place;
  }

  BucketAccess bucket() {
    return bucket;
  }

  /** Shows all objects: those of blocks to one, others to the other. */
  void list(BooleanSupplier stopped, Consumer<BlockObject> blocks, Consumer<Listed> others) {
    bucket.list(
        prefix,
        entry -> {
          BlockObject block = block(entry);
          if (block != null) {
            blocks.accept(block);
          } else if (!entry.key().equals(prefix + BucketCollector.LEASE)) {
            others.accept(entry);
          }
          return !stopped.getAsBoolean();
        });
  }

  private @Nullable BlockObject block(Listed entry) {
    Matcher name = NAME.matcher(entry.key().substring(prefix.length() + 1));
    if (!name.matches() || !name.group(3).startsWith(name.group(2))) {
      return null;
    }
    BlockIds id = BlockIds.ofHex(name.group(3));
    return new BlockObject(entry, name.group(1), id.high(0), id.low(0));
  }

  /** The layout of a block, from its folder; null when its end does not tell. */
  @Nullable StoredLayout layout(BlockObject block) {
    StoredLayout known = layouts.get(block.folder());
    if (known == null) {
      known = layoutOf(block);
      if (known != null) {
        layouts.put(block.folder(), known);
      }
    }
    return known;
  }

  private @Nullable StoredLayout layoutOf(BlockObject block) {
    long size = block.entry().size();
    ByteBuffer tail = ByteBuffer.allocate(StoredFooter.TAIL_BYTES);
    var _ = bucket.tail(block.entry().key(), size, tail);
    int length = StoredFooter.byteSize(tail);
    if (length == 0 || length > size) {
      return null;
    }
    if (length > tail.limit()) {
      tail = ByteBuffer.allocate(length);
      var _ = bucket.tail(block.entry().key(), size, tail);
    }
    try {
      return StoredFooter.read(tail, size, block.high(), block.low()).layout();
    } catch (StoredFooter.Fault _) {
      return null;
    }
  }

  /** A block as people see it. */
  StoredBlock stored(BlockObject block) {
    StoredLayout layout = layout(block);
    Listed entry = block.entry();
    long size = entry.size();
    String fault = null;
    if (layout != null && size != objectSize(layout)) {
      fault = "it has %s bytes, others of its layout %s".formatted(size, objectSize(layout));
    }
    return new StoredBlock(
        block.high(),
        block.low(),
        place + "/" + block.folder(),
        layout == null ? size : layout.blockSize(),
        size,
        layout,
        entry.modified(),
        fault);
  }

  private static long objectSize(StoredLayout layout) {
    return StoredFooter.fileSize(layout);
  }

  @Override
  public boolean holds(StoredBlock block) {
    StoredLayout layout = block.layout();
    if (layout == null) {
      return false;
    }
    for (Listed entry : present().getOrDefault(block.id(), List.of())) {
      if (entry.size() == objectSize(layout)) {
        ObjectReply reply = bucket.send(ObjectRequest.head(entry.key()));
        if (reply.objectSize() == entry.size() && reply.ok() && !ObjectFormat.isBare(reply)) {
          return true;
        }
      }
    }
    return false;
  }

  private synchronized Map<String, List<Listed>> present() {
    Map<String, List<Listed>> all = present;
    if (all == null) {
      Map<String, List<Listed>> listed = new HashMap<>();
      list(
          () -> false,
          block -> listed.computeIfAbsent(block.id(), _ -> new ArrayList<>(1)).add(block.entry()),
          _ -> {});
      all = listed;
      present = all;
    }
    return all;
  }

  @Override
  public WholeBlock read(StoredBlock block) {
    String folder = block.directory().substring(place.length() + 1);
    String id = block.id();
    String key = String.join("/", prefix, folder, id.substring(0, 3), id);
    return read(key, block.usedBytes(), block.idHigh(), block.idLow(), new Reading());
  }

  /** What else was found while a block was read. */
  static final class Reading {
    boolean bare;
    @Nullable WholeObject object;
  }

  WholeBlock read(String key, long size, long high, long low, Reading reading) {
    if (size > Integer.MAX_VALUE) {
      return new WholeBlock(null, "it has " + size + " bytes, and less than 2 GiB can be read");
    }
    ByteBuffer bytes = ByteBuffer.allocateDirect((int) size);
    ObjectReply reply = bucket.get(key, size, bytes);
    if (reply.isMissing()) {
      return new WholeBlock(null, null);
    }
    if (bytes.limit() < size) {
      return new WholeBlock(null, "it has " + bytes.limit() + " bytes, listed were " + size);
    }
    try {
      reading.bare = ObjectFormat.isBare(reply);
      WholeObject object = new WholeObject(bytes, high, low);
      if (!reading.bare && !object.matches(reply)) {
        return new WholeBlock(null, "its metadata are those of other bytes");
      }
      reading.object = object;
      return new WholeBlock(bytes, null);
    } catch (StoredFooter.Fault e) {
      return new WholeBlock(null, e.getMessage());
    }
  }

  @Override
  public void write(StoredBlock block, ByteBuffer bytes) {
    try {
      WholeObject object = new WholeObject(bytes, block.idHigh(), block.idLow());
      String key = object.key(prefix);
      ObjectReply reply = bucket.send(object.put(key));
      if (!reply.ok()) {
        throw new StoreException("there is no such bucket: create it first");
      }
    } catch (StoredFooter.Fault e) {
      throw new StoreException("the block " + block.id() + " is not stored: " + e.getMessage(), e);
    }
  }

  @Override
  public void close() {
    bucket.close();
  }
}

package ucm.store.s3.admin;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.Map;
import java.util.zip.CRC32C;
import ucm.api.BlockIds;
import ucm.api.admin.StoredLayout;
import ucm.store.file.format.StoredFooter;
import ucm.store.s3.block.Crc32cSum;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/** The object of a block of any layout, all of it in memory and compared with its checksums. Immutable. */
public final class WholeObject {

  private final ByteBuffer bytes;
  private final StoredFooter footer;
  private final long high;
  private final long low;

  /**
   * Compares bytes with their checksums.
   *
   * @param bytes from 0 to the limit; not changed as long as this is used
   * @throws StoredFooter.Fault when they are not those that were written
   */
  public WholeObject(ByteBuffer bytes, long high, long low) throws StoredFooter.Fault {
    this.bytes = bytes;
    this.footer = StoredFooter.verified(bytes, high, low);
    this.high = high;
    this.low = low;
  }

  public StoredLayout layout() {
    return footer.layout();
  }

  /** The name of the folder of its layout: the CRC32C of the sizes of block, shard and tensors. */
  public String layoutCrc() {
    StoredLayout layout = footer.layout();
    ByteBuffer sizes =
        ByteBuffer.allocate(2 * Long.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(layout.blockSize())
            .putLong(layout.shardSize());
    // The sizes of the tensors follow; the footer has the checksum of these.
    Crc32cSum addTensors = new Crc32cSum((long) layout.tensorCount() * Long.BYTES);
    int crc = addTensors.then(ObjectFormat.crcOf(sizes.array()), footer.layoutCrc());
    return HexFormat.of().toHexDigits(crc);
  }

  /** Where it belongs. */
  public String key(String prefix) {
    return key(prefix, layoutCrc(), BlockIds.hex(high, low));
  }

  /** Where a block of a layout belongs. */
  static String key(String prefix, String layoutCrc, String id) {
    return String.join("/", prefix, layoutCrc, id.substring(0, ObjectFormat.FOLDER_DIGITS), id);
  }

  /** Stores it under a key with its metadata, in the place of what is there. */
  public ObjectRequest put(String key) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    Map<String, String> headers = ObjectFormat.headers(metadata(), (int) crc.getValue());
    return ObjectRequest.put(key, headers, source(bytes), bytes.limit());
  }

  /** A body of bytes, from 0 to the limit. */
  public static ObjectRequest.Source source(ByteBuffer bytes) {
    return (offset, into) -> {
      int size = Math.min(into.remaining(), bytes.limit() - (int) offset);
      into.put(into.position(), bytes, (int) offset, size);
      into.position(into.position() + size);
    };
  }

  private String metadata() {
    return ObjectFormat.metadata(layoutCrc(), high, low, footer.shardCrcs());
  }

  /** Whether the metadata of an answer are those that these bytes must have. */
  public boolean matches(ObjectReply reply) {
    return metadata().equals(reply.header(ObjectFormat.METADATA));
  }
}

package ucm.store.s3.admin;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.zip.CRC32C;
import ucm.api.BlockIds;
import ucm.api.admin.StoredLayout;
import ucm.store.file.format.StoredFooter;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/** The object of a block of any layout, all of it in memory and compared with its checksums. Immutable. */
final class WholeObject {

  private final ByteBuffer bytes;
  private final StoredFooter footer;
  private final String layoutCrc;
  private final long high;
  private final long low;

  /**
   * Compares bytes with their checksums.
   *
   * @param bytes from 0 to the limit; not changed as long as this is used
   * @throws StoredFooter.Fault when they are not those that were written
   */
  WholeObject(ByteBuffer bytes, long high, long low) throws StoredFooter.Fault {
    this.bytes = bytes;
    this.footer = StoredFooter.verified(bytes, high, low);
    StoredLayout layout = footer.layout();
    this.layoutCrc =
        ObjectFormat.layoutCrc(
            layout.blockSize(), layout.shardSize(), layout.tensorCount(), footer.layoutCrc());
    this.high = high;
    this.low = low;
  }

  /** The name of the folder of its layout. */
  String layoutCrc() {
    return layoutCrc;
  }

  /** Where it belongs. */
  String key(String prefix) {
    return key(prefix, layoutCrc, BlockIds.hex(high, low));
  }

  /** Where a block of a layout belongs. */
  static String key(String prefix, String layoutCrc, String id) {
    return String.join("/", prefix, layoutCrc, id.substring(0, ObjectFormat.FOLDER_DIGITS), id);
  }

  /** Stores it under a key with its metadata, in the place of what is there. */
  ObjectRequest put(String key) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    Map<String, String> headers = ObjectFormat.headers(metadata(), (int) crc.getValue());
    return ObjectRequest.put(key, headers, ObjectRequest.Source.of(bytes), bytes.limit());
  }

  private String metadata() {
    return ObjectFormat.metadata(layoutCrc, high, low, footer.shardCrcs());
  }

  /** Whether the metadata of an answer are those that these bytes must have. */
  boolean matches(ObjectReply reply) {
    return metadata().equals(reply.header(ObjectFormat.METADATA));
  }
}

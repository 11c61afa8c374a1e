package ucm.store.s3.block;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.store.file.format.BlockFooter;
import ucm.store.s3.client.ObjectReply;

/**
 * How a block is an object: byte for byte the file that {@code Posix} has of it, under the key {@code
 * <prefix>/<layout, 8 hex>/<first 3 hex>/<32 hex>}, with user metadata that comes with each answer:
 *
 * <pre>
 *   x-amz-meta-ucm: 1:LAYOUT:BLOCK:CRCS:CRC
 *
 *   1       version
 *   LAYOUT  CRC32C of the sizes of block, shard and tensors, 8 hex
 *   BLOCK   its id, 32 hex
 *   CRCS    CRC32C of each shard, little-endian, base64
 *   CRC     CRC32C of what is before the last colon, 8 hex
 * </pre>
 *
 * <p>An object that a tool copied from a folder has no metadata: its footer is read instead. Thread-safe.
 */
public final class ObjectFormat {

  /** Of the 2 KiB that metadata may have, what the checksums do not need is left for the rest. */
  public static final int MOST_SHARDS = 350;

  public static final String METADATA = "x-amz-meta-ucm";

  /** A block's key below the prefix: the folder of its layout, the first digits of its id, and its id. */
  public static final Pattern BLOCK = Pattern.compile("([0-9a-f]{8})/([0-9a-f]{3})/([0-9a-f]{32})");

  private static final String VERSION = "1";
  private static final int FIELDS = 5;
  private static final int CRCS = 3;
  public static final int FOLDER_DIGITS = 3;
  private static final HexFormat HEX = HexFormat.of();

  private final BlockLayout layout;
  private final BlockFooter footer;
  private final String layoutCrc;
  private final String folder;
  private final Crc32cSum addShard;
  private final Crc32cSum addGap;
  private final Crc32cSum addFooter;
  private final int gapCrc;

  /** Objects of one layout, whose keys begin with a prefix. */
  public ObjectFormat(BlockLayout layout, String prefix) {
    this.layout = layout;
    this.footer = new BlockFooter(layout);
    this.layoutCrc =
        layoutCrc(layout.blockSize(), layout.shardSize(), layout.tensorCount(), footer.layoutCrc());
    this.folder = prefix + "/" + layoutCrc + "/";
    this.addShard = new Crc32cSum(layout.shardSize());
    this.addGap = new Crc32cSum(footer.gap());
    this.addFooter = new Crc32cSum(footer.byteSize());
    this.gapCrc = crcOf(new byte[footer.gap()]);
  }

  /**
   * The name of the folder of a layout: the CRC32C of the sizes of block, shard and tensors.
   *
   * @param tensorsCrc the CRC32C of the sizes of the tensors, as footers have it
   */
  public static String layoutCrc(long blockSize, long shardSize, int tensors, int tensorsCrc) {
    ByteBuffer sizes =
        ByteBuffer.allocate(2 * Long.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(blockSize)
            .putLong(shardSize);
    Crc32cSum addTensors = new Crc32cSum((long) tensors * Long.BYTES);
    return HEX.toHexDigits(addTensors.then(crcOf(sizes.array()), tensorsCrc));
  }

  private static int crcOf(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return (int) crc.getValue();
  }

  public BlockLayout layout() {
    return layout;
  }

  BlockFooter footer() {
    return footer;
  }

  /** Bytes of an object. */
  public long objectSize() {
    return footer.fileSize();
  }

  /** Where a block is in the bucket. */
  public String key(long high, long low) {
    String id = BlockIds.hex(high, low);
    return folder + id.substring(0, FOLDER_DIGITS) + "/" + id;
  }

  /** What an object of a block has for metadata. */
  String metadata(long high, long low, int[] shardCrcs) {
    return metadata(layoutCrc, high, low, shardCrcs);
  }

  /** The same for a layout of which only the checksum is known. */
  public static String metadata(String layoutCrc, long high, long low, int[] shardCrcs) {
    ByteBuffer crcs =
        ByteBuffer.allocate(shardCrcs.length * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    crcs.asIntBuffer().put(shardCrcs);
    String before =
        String.join(
            ":",
            VERSION,
            layoutCrc,
            BlockIds.hex(high, low),
            Base64.getEncoder().encodeToString(crcs.array()));
    return before + ":" + HEX.toHexDigits(crcOf(before.getBytes(StandardCharsets.US_ASCII)));
  }

  /**
   * The CRC32C of each shard, as an answer's metadata has them.
   *
   * @return null when it has none, or they are damaged or those of another block or layout
   */
  int @Nullable [] shardCrcs(ObjectReply reply, long high, long low) {
    String text = reply.header(METADATA);
    String[] fields = text.split(":", -1);
    int[] crcs = new int[layout.shardCount()];
    try {
      byte[] bytes = Base64.getDecoder().decode(fields.length == FIELDS ? fields[CRCS] : "");
      ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(crcs);
    } catch (IllegalArgumentException | BufferUnderflowException e) {
      return null;
    }
    // All of the rest, too, is as this program writes it of the block.
    return metadata(high, low, crcs).equals(text) ? crcs : null;
  }

  /** Whether an answer has no metadata at all, so that only the footer can say what the object is. */
  public static boolean isBare(ObjectReply reply) {
    return reply.header(METADATA).isEmpty();
  }

  /** Whether an answer to a HEAD is that of a whole block, as far as size and metadata can tell. */
  public boolean isWhole(ObjectReply reply, long high, long low) {
    return reply.ok()
        && reply.objectSize() == objectSize()
        && (isBare(reply) || shardCrcs(reply, high, low) != null);
  }

  /**
   * The headers of a PUT.
   *
   * @param footerCrc the CRC32C of all of the footer
   */
  Map<String, String> headers(long high, long low, int[] shardCrcs, int footerCrc) {
    int sum = 0;
    for (int crc : shardCrcs) {
      sum = addShard.then(sum, crc);
    }
    sum = addFooter.then(addGap.then(sum, gapCrc), footerCrc);
    return headers(metadata(high, low, shardCrcs), sum);
  }

  /** The headers of a PUT with some metadata; the CRC32C of the object lets the server check what it gets. */
  public static Map<String, String> headers(String metadata, int objectCrc) {
    byte[] bigEndian = ByteBuffer.allocate(Integer.BYTES).putInt(objectCrc).array();
    String crc = Base64.getEncoder().encodeToString(bigEndian);
    return Map.of(METADATA, metadata, "x-amz-checksum-crc32c", crc);
  }
}

package ucm.store.file.format;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;

/**
 * What follows the bytes of a block in its file, and says that they are the bytes of this block,
 * whole and unharmed.
 *
 * <pre>
 * file:    0                    block size      a                       a + n = file size
 *          | shard 0 | shard 1 ...     | zeros  | footer                |
 *
 *          a = block size, rounded up to 4096; n = a multiple of 4096, so that O_DIRECT can write it
 *
 * footer:  all numbers little-endian
 *
 *       0  +-------------------+-------------------+
 *          | magic "UCMBLOCK"                      |
 *       8  +-------------------+-------------------+
 *          | version (1)       | tensors per shard |
 *      16  +-------------------+-------------------+
 *          | block id, 16 bytes as in the file name|
 *          |                                       |
 *      32  +-------------------+-------------------+
 *          | block size                            |
 *      40  +-------------------+-------------------+
 *          | shard size                            |
 *      48  +-------------------+-------------------+
 *          | shards per block  | CRC of layout     |  CRC32C of the tensor sizes, 8 bytes each
 *      56  +-------------------+-------------------+
 *          | CRC of shard 0    | CRC of shard 1    |  CRC32C of the bytes of each shard
 *          | ...                                   |
 *          | zeros                                 |
 *  n - 16  +-------------------+-------------------+
 *          | magic "UCMENDBL"                      |  lets a reader of unknown files find the footer
 *   n - 8  +-------------------+-------------------+
 *          | n                 | CRC of the footer |  CRC32C of bytes 0 to n - 4
 *       n  +-------------------+-------------------+
 * </pre>
 *
 * <p>The original store ignores what follows the block. A file that ends right after its block was
 * written by it, and nothing is known about its bytes. Immutable and thread-safe, unlike {@link
 * Buffer}.
 */
public final class BlockFooter {

  /** What the start and the length of a footer are multiples of. */
  public static final int ALIGNMENT = 4096;

  static final int VERSION = 1;
  static final long MAGIC = magic("UCMBLOCK");
  static final long END_MAGIC = magic("UCMENDBL");

  static final int VERSION_AT = 8;
  static final int TENSORS_AT = 12;
  static final int ID_AT = 16;
  static final int BLOCK_SIZE_AT = 32;
  static final int SHARD_SIZE_AT = 40;
  static final int SHARDS_AT = 48;
  static final int LAYOUT_CRC_AT = 52;
  static final int SHARD_CRCS_AT = 56;
  // Counted from the end of the footer.
  static final int END_MAGIC_AT = -16;
  static final int LENGTH_AT = -8;
  static final int FOOTER_CRC_AT = -4;

  private final BlockLayout layout;
  private final int layoutCrc;
  private final long offset;
  private final int byteSize;

  /** The footers of blocks of one layout. */
  public BlockFooter(BlockLayout layout) {
    this.layout = layout;
    this.layoutCrc = layoutCrc(layout);
    this.offset = aligned(layout.blockSize());
    long content = SHARD_CRCS_AT + (long) layout.shardCount() * Integer.BYTES - END_MAGIC_AT;
    this.byteSize = Math.toIntExact(aligned(content));
  }

  /** Memory for one footer, reused from block to block. Not thread-safe. */
  public static final class Buffer {

    private final MemorySegment segment;
    private final ByteBuffer bytes;
    private final CRC32C crc = new CRC32C();

    private Buffer(int byteSize) {
      segment = Arena.ofAuto().allocate(byteSize, ALIGNMENT);
      bytes = segment.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The bytes, to be read from and written to a file. */
    public MemorySegment segment() {
      return segment;
    }

    private int at(int offset) {
      return offset < 0 ? bytes.capacity() + offset : offset;
    }

    private static int computedCrc(ByteBuffer footer, CRC32C crc) {
      int limit = footer.limit();
      crc.reset();
      crc.update(footer.limit(limit + FOOTER_CRC_AT).position(0));
      footer.limit(limit).position(0);
      return (int) crc.getValue();
    }
  }

  /** Memory for one footer of this layout. */
  public Buffer newBuffer() {
    return new Buffer(byteSize);
  }

  /** Where the footer starts in its file, in bytes. */
  public long offset() {
    return offset;
  }

  /** Bytes of the footer. */
  public int byteSize() {
    return byteSize;
  }

  /** Bytes between the block and its footer; they are zero. */
  public int gap() {
    return (int) (offset - layout.blockSize());
  }

  /** Bytes of a file with a footer. */
  public long fileSize() {
    return offset + byteSize;
  }

  /** The blocks' layout. */
  public BlockLayout layout() {
    return layout;
  }

  /** The CRC32C of the sizes of its tensors. */
  public int layoutCrc() {
    return layoutCrc;
  }

  /**
   * Writes the footer of a block.
   *
   * @param shardCrcs the CRC32C of each shard
   */
  public void write(Buffer into, long idHigh, long idLow, int[] shardCrcs) {
    into.segment.fill((byte) 0);
    ByteBuffer bytes = into.bytes;
    bytes.putLong(0, MAGIC);
    bytes.putInt(VERSION_AT, VERSION);
    bytes.putInt(TENSORS_AT, layout.tensorCount());
    bytes.putLong(ID_AT, Long.reverseBytes(idHigh));
    bytes.putLong(ID_AT + Long.BYTES, Long.reverseBytes(idLow));
    bytes.putLong(BLOCK_SIZE_AT, layout.blockSize());
    bytes.putLong(SHARD_SIZE_AT, layout.shardSize());
    bytes.putInt(SHARDS_AT, layout.shardCount());
    bytes.putInt(LAYOUT_CRC_AT, layoutCrc);
    for (int i = 0; i < layout.shardCount(); i++) {
      bytes.putInt(SHARD_CRCS_AT + i * Integer.BYTES, shardCrcs[i]);
    }
    bytes.putLong(into.at(END_MAGIC_AT), END_MAGIC);
    bytes.putInt(into.at(LENGTH_AT), byteSize);
    bytes.putInt(into.at(FOOTER_CRC_AT), Buffer.computedCrc(bytes, into.crc));
  }

  /**
   * Says why a footer is not that of a whole block of this layout. Takes any bytes.
   *
   * @return what is wrong with it, or null when it is good
   */
  public @Nullable String fault(Buffer footer, long idHigh, long idLow) {
    String fault = fault(footer.bytes, footer.crc, idHigh, idLow);
    return fault != null ? fault : layoutFault(footer.bytes);
  }

  /** Says why some bytes, up to their limit, are not a footer of this block, of whatever layout. */
  static @Nullable String fault(ByteBuffer bytes, CRC32C crc, long idHigh, long idLow) {
    if (bytes.getLong(0) != MAGIC) {
      return "there is no footer: its magic is 0x" + Long.toHexString(bytes.getLong(0));
    }
    int stored = bytes.getInt(bytes.limit() + FOOTER_CRC_AT);
    int computed = Buffer.computedCrc(bytes, crc);
    if (stored != computed) {
      return differs("the footer is damaged: its CRC32C", stored, computed);
    }
    if (bytes.getInt(VERSION_AT) != VERSION) {
      return "the footer has format version %s; this program reads %s"
          .formatted(bytes.getInt(VERSION_AT), VERSION);
    }
    long high = Long.reverseBytes(bytes.getLong(ID_AT));
    long low = Long.reverseBytes(bytes.getLong(ID_AT + Long.BYTES));
    if (high != idHigh || low != idLow) {
      return "it holds another block, " + BlockIds.hex(high, low);
    }
    return null;
  }

  private @Nullable String layoutFault(ByteBuffer bytes) {
    if (bytes.getLong(BLOCK_SIZE_AT) == layout.blockSize()
        && bytes.getLong(SHARD_SIZE_AT) == layout.shardSize()
        && bytes.getInt(SHARDS_AT) == layout.shardCount()
        && bytes.getInt(TENSORS_AT) == layout.tensorCount()
        && bytes.getInt(LAYOUT_CRC_AT) == layoutCrc) {
      return null;
    }
    return ("it was written with another layout: block %s, shard %s bytes, %s tensors a shard;"
            + " configured is %s")
        .formatted(
            bytes.getLong(BLOCK_SIZE_AT),
            bytes.getLong(SHARD_SIZE_AT),
            bytes.getInt(TENSORS_AT),
            layout);
  }

  /** Takes the CRC32C of each shard from a footer without fault. */
  public int[] shardCrcs(Buffer footer, int[] into) {
    for (int i = 0; i < into.length; i++) {
      into[i] = footer.bytes.getInt(SHARD_CRCS_AT + i * Integer.BYTES);
    }
    return into;
  }

  /** Says how a stored checksum and the bytes disagree. */
  public static String differs(String what, int stored, int computed) {
    return "%s is stored as %x, the bytes give %x".formatted(what, stored, computed);
  }

  /**
   * Whether some bytes, the last of a file, are the end of a footer of whatever layout. A file of the
   * size of a bare block may be a whole file of another, smaller layout.
   *
   * @param tail at least the last 16 bytes of a file
   */
  public static boolean isFooterEnd(Buffer tail) {
    return StoredFooter.byteSize(tail.bytes) > 0;
  }

  static int layoutCrc(BlockLayout layout) {
    ByteBuffer sizes =
        ByteBuffer.allocate(layout.tensorCount() * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < layout.tensorCount(); i++) {
      sizes.putLong(layout.tensorSize(i));
    }
    CRC32C crc = new CRC32C();
    crc.update(sizes.flip());
    return (int) crc.getValue();
  }

  static long aligned(long bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  private static long magic(String text) {
    long word = 0;
    for (int i = 0; i < Long.BYTES; i++) {
      word |= (long) text.charAt(i) << (8 * i);
    }
    return word;
  }
}

package ucm.store.file.format;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.admin.StoredLayout;

/**
 * A {@link BlockFooter} read without knowing the layout, from the end of a file: for
 * tools that read whatever lies in a directory. Immutable.
 */
public final class StoredFooter {

  /** How much of the end of a file to read first: most footers fit. */
  public static final int TAIL_BYTES = BlockFooter.ALIGNMENT;

  private static final int LEAST_BYTES = 16;
  // A block has at most 2^20 shards.
  private static final int MOST_BYTES = 8 << 20;

  private final StoredLayout layout;
  private final int layoutCrc;
  private final int[] shardCrcs;

  private StoredFooter(StoredLayout layout, int layoutCrc, int[] shardCrcs) {
    this.layout = layout;
    this.layoutCrc = layoutCrc;
    this.shardCrcs = shardCrcs;
  }

  /** A footer that cannot be used; its message says why. */
  public static final class Fault extends Exception {

    private static final long serialVersionUID = 1L;

    private Fault(String message) {
      super(message, null, false, false);
    }
  }

  /**
   * How long the footer is that a file ends with.
   *
   * @param tail the last bytes of the file, up to its limit
   * @return its bytes; 0 when there is none
   * @throws Fault when it says that it is longer than it can be
   */
  public static int byteSize(ByteBuffer tail, long fileSize) throws Fault {
    int length = byteSize(tail);
    if (length > fileSize) {
      throw new Fault("its footer says that it is longer than the whole file");
    }
    if (length > MOST_BYTES) {
      throw new Fault("its footer says that it has " + length + " bytes, which none has");
    }
    return length;
  }

  /** The same, whatever it says; 0 when this is no end of a footer. */
  public static int byteSize(ByteBuffer tail) {
    ByteBuffer bytes = tail.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    int end = bytes.limit();
    if (end < LEAST_BYTES
        || bytes.getLong(end + BlockFooter.END_MAGIC_AT) != BlockFooter.END_MAGIC) {
      return 0;
    }
    int length = bytes.getInt(end + BlockFooter.LENGTH_AT);
    return length > 0 && length % BlockFooter.ALIGNMENT == 0 ? length : 0;
  }

  /**
   * Reads a whole footer.
   *
   * @param footer its bytes, from 0 to the limit
   * @param fileSize of the file that it ends
   * @throws Fault when it is damaged, or is not that of this block
   */
  public static StoredFooter read(ByteBuffer footer, long fileSize, long idHigh, long idLow)
      throws Fault {
    ByteBuffer bytes = footer.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    int length = bytes.limit();
    String fault = BlockFooter.fault(bytes, new CRC32C(), idHigh, idLow);
    if (fault != null) {
      throw new Fault(fault);
    }
    long blockSize = bytes.getLong(BlockFooter.BLOCK_SIZE_AT);
    long shardSize = bytes.getLong(BlockFooter.SHARD_SIZE_AT);
    int shards = bytes.getInt(BlockFooter.SHARDS_AT);
    int tensors = bytes.getInt(BlockFooter.TENSORS_AT);
    boolean whole = shards > 0 && tensors > 0 && shardSize > 0 && blockSize / shards == shardSize;
    if (!whole
        || blockSize % shards != 0
        || BlockFooter.aligned(blockSize) + length != fileSize
        || BlockFooter.SHARD_CRCS_AT + (long) shards * Integer.BYTES
            > length + BlockFooter.END_MAGIC_AT) {
      throw new Fault(
          "its size is %s bytes, which does not fit its footer: block %s of %s shards of %s"
              .formatted(fileSize, blockSize, shards, shardSize));
    }
    int[] crcs = new int[shards];
    for (int i = 0; i < shards; i++) {
      crcs[i] = bytes.getInt(BlockFooter.SHARD_CRCS_AT + i * Integer.BYTES);
    }
    int layoutCrc = bytes.getInt(BlockFooter.LAYOUT_CRC_AT);
    long tensorSize = tensorSize(blockSize, shardSize, tensors, layoutCrc);
    return new StoredFooter(
        new StoredLayout(blockSize, shardSize, tensors, tensorSize), layoutCrc, crcs);
  }

  /**
   * Reads the footer of a whole file, and compares the checksums of all of it.
   *
   * @param file its bytes, from 0 to the limit
   * @throws Fault when anything is not as it was written
   */
  public static StoredFooter verified(ByteBuffer file, long idHigh, long idLow) throws Fault {
    int size = file.limit();
    int tail = Math.min(TAIL_BYTES, size);
    int length = byteSize(file.slice(size - tail, tail), size);
    if (length == 0) {
      throw new Fault("it has no checksums");
    }
    StoredFooter footer = read(file.slice(size - length, length), size, idHigh, idLow);
    CRC32C crc = new CRC32C();
    int shard = Math.toIntExact(footer.layout.shardSize());
    for (int i = 0; i < footer.shardCrcs.length; i++) {
      crc.reset();
      crc.update(file.slice(i * shard, shard));
      String wrong = footer.fault(i, (int) crc.getValue());
      if (wrong != null) {
        throw new Fault(wrong);
      }
    }
    return footer;
  }

  /** The size of each tensor when they are all alike, which the checksum of the sizes shows; or 0. */
  private static long tensorSize(long blockSize, long shardSize, int tensors, int layoutCrc) {
    if (shardSize % tensors != 0) {
      return 0;
    }
    long each = shardSize / tensors;
    BlockLayout uniform = BlockLayout.uniform(each, shardSize, blockSize);
    return BlockFooter.layoutCrc(uniform) == layoutCrc ? each : 0;
  }

  public StoredLayout layout() {
    return layout;
  }

  /** The size of a file that holds a block of a layout and its footer. */
  public static long fileSize(StoredLayout layout) {
    long content =
        BlockFooter.SHARD_CRCS_AT + layout.shardCount() * Integer.BYTES - BlockFooter.END_MAGIC_AT;
    return BlockFooter.aligned(layout.blockSize()) + BlockFooter.aligned(content);
  }

  /** The CRC32C of the sizes of its tensors. */
  public int layoutCrc() {
    return layoutCrc;
  }

  /** The CRC32C of each shard. */
  public int[] shardCrcs() {
    return shardCrcs.clone();
  }

  /**
   * Compares the checksum of a shard.
   *
   * @return what is wrong, or null when it is right
   */
  public @Nullable String fault(int shard, int computed) {
    return shardCrcs[shard] == computed
        ? null
        : BlockFooter.differs(
            "shard " + shard + " is damaged: its CRC32C", shardCrcs[shard], computed);
  }
}

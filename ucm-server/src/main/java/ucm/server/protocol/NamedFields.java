package ucm.server.protocol;

import java.util.Arrays;
import java.util.BitSet;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.protocol.PlanMessage.PlannedMessage;

/**
 * OPEN_NAMED, after the engine: a worker that names its blocks by itself. Its questions are answered by
 * {@link LeasedMessage}, {@link ReservedMessage} and {@link BlocksMessage}.
 *
 * @param layout one tensor, which is the block
 * @param mostSlots so many slots are enough, at least 1
 */
// Packed on purpose, as in LookupMessage. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record NamedFields(KvLayout layout, int mostSlots) {

  public static NamedFields read(FrameReader body) throws ProtocolException {
    KvLayout layout = WorkerFields.layout(new long[][] {{body.u64()}});
    int mostSlots = body.u32();
    if (mostSlots < 1) {
      throw ProtocolException.bad("a worker needs 1 slot or more; it asks for " + mostSlots);
    }
    return new NamedFields(layout, mostSlots);
  }

  /** The worker as one of an engine with one layer. */
  public WorkerFields worker() {
    return new WorkerFields(0, layout, "", StageMessage.ONLY, GroupsMessage.NONE, null);
  }

  public FrameWriter write(FrameWriter to) {
    return to.u64(layout.tensorBytes(0, 0)).u32(mostSlots);
  }

  /**
   * LEASED: where blocks can be read.
   *
   * @param hold number of the hold, 0 without one
   * @param found how many of the first blocks are there; more than slots when slots are short
   * @param slots one for each of the first blocks
   */
  public record LeasedMessage(long hold, int found, int[] slots) {

    /** That nothing can be read. */
    public static final LeasedMessage NOTHING = new LeasedMessage(0, 0, new int[0]);
  }

  /**
   * RESERVED: where blocks can be written.
   *
   * @param save number of the save, 0 when no block has a slot
   * @param slots one for each block, {@link PlannedMessage#NO_SLOT}, or {@link #STORED}
   */
  public record ReservedMessage(long save, int[] slots) {

    /** In place of a slot: the block is stored already. */
    public static final int STORED = -2;

    /** That no block can be written. */
    public static ReservedMessage nothing(int blocks) {
      int[] slots = new int[blocks];
      Arrays.fill(slots, PlannedMessage.NO_SLOT);
      return new ReservedMessage(0, slots);
    }
  }

  /**
   * OPEN_REGION: a file of shared memory that holds chunks of the size of a block.
   *
   * @param descriptor its number in the client's process
   * @param byteSize all of it
   * @param inode its number in its file system
   */
  public record RegionMessage(int descriptor, long byteSize, long inode) {}

  /**
   * STORE_CHUNKS and LOAD_CHUNKS: blocks, and where in the worker's region each lies or belongs.
   *
   * @param ids what the blocks are called
   * @param chunks the number of the chunk of each
   */
  public record ChunksMessage(BlockIds ids, int[] chunks) {}

  /**
   * FOUND_WHICH and MOVED: some of the blocks that were named.
   *
   * @param bits bit {@code i % 8} of byte {@code i / 8} says it of block i; bytes of zero at the end are left
   *     off
   */
  public record BlocksMessage(byte[] bits) {

    public static BlocksMessage of(BitSet blocks) {
      return new BlocksMessage(blocks.toByteArray());
    }

    public BitSet blocks() {
      return BitSet.valueOf(bits);
    }
  }
}

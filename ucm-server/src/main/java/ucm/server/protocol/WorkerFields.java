package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;
import static ucm.server.protocol.Wire.As.U8;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.engine.KvLayout;

/**
 * OPEN_WORKER, after the engine: one rank and its KV cache.
 *
 * @param rank its number: that of its stage times the tensor-parallel size, and its tensor-parallel rank
 * @param layout bytes of a block in each tensor
 * @param layoutText what the blocks' bytes are like when they are not of a classic layout, else empty
 * @param stage which layers it has; it comes in a message before, as do the groups
 * @param groups of its layers
 * @param device where the KV cache is when the daemon may copy it, else null: the worker copies
 */
public record WorkerFields(
    int rank,
    KvLayout layout,
    String layoutText,
    StageMessage stage,
    GroupsMessage groups,
    @Nullable DeviceFields device) {

  private static final int MOST_LAYERS = 4096;

  /** Reads them; stage and groups were said before. */
  public static WorkerFields read(FrameReader body, StageMessage stage, GroupsMessage groups)
      throws ProtocolException {
    int rank = body.u32();
    int layers = body.count(Integer.BYTES);
    if (layers < 1 || layers > MOST_LAYERS) {
      throw ProtocolException.bad(
          "a KV cache has 1 to " + MOST_LAYERS + " layers; found " + layers);
    }
    long[][] bytes = new long[layers][];
    for (int layer = 0; layer < layers; layer++) {
      bytes[layer] = body.longs();
    }
    KvLayout layout = layout(bytes);
    String text = body.string();
    int[] tensors = Arrays.stream(bytes).mapToInt(layer -> layer.length).toArray();
    DeviceFields device = body.hasMore() ? DeviceFields.read(body, tensors) : null;
    return new WorkerFields(rank, layout, text, stage, groups, device);
  }

  static KvLayout layout(long[][] bytes) throws ProtocolException {
    for (long[] layer : bytes) {
      for (long tensor : layer) {
        if (tensor < 1 || tensor > Integer.MAX_VALUE) {
          throw ProtocolException.bad("a block has 1 byte to 2 GiB in a tensor; found " + tensor);
        }
      }
    }
    try {
      return KvLayout.of(bytes);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.bad(String.valueOf(e.getMessage()));
    }
  }

  /** What its blocks are like. */
  public String blocks() {
    return layout + layoutText + (groups.isOne() ? "" : " in groups " + groups);
  }

  /** Writes them, without a device. */
  public FrameWriter write(FrameWriter to) {
    to.u32(rank).u32(layout.layers());
    for (int layer = 0; layer < layout.layers(); layer++) {
      long[] tensors = new long[layout.tensors(layer)];
      for (int tensor = 0; tensor < tensors.length; tensor++) {
        tensors[tensor] = layout.tensorBytes(layer, tensor);
      }
      to.longs(tensors);
    }
    return to.string(layoutText);
  }

  /**
   * OPENED_WORKER: the slots of a rank, and who copies them.
   *
   * @param generation tells these slots from those of other times
   * @param path of the segment
   * @param byteSize its size
   * @param inode its number in its file system
   * @param slots how many
   * @param stride bytes from one slot to the next
   * @param daemonCopies whether the daemon copies between slots and KV cache; else the worker does
   * @param hostReason why the daemon does not copy although it was asked to; else empty
   * @param settings as in {@code SETTINGS}
   */
  public record OpenedWorkerMessage(
      @Wire(HANDLE) int generation,
      String path,
      long byteSize,
      long inode,
      int slots,
      long stride,
      boolean daemonCopies,
      String hostReason,
      @Wire(U8) int settings) {}

  /**
   * LENDING: memory in which the worker reads blocks that the store has there.
   *
   * @param descriptor of the memory in the daemon's process
   * @param byteSize all of it
   * @param slots how many; 0 when no blocks are lent
   * @param stride bytes from one slot to the next
   * @param inode the memory's number in its file system, by which it is told from others
   * @param device the number of that file system
   * @param placesAt where the worker finds in its segment which of these it reads for a slot; 0 when it is told their
   *     numbers themselves
   */
  public record LendingMessage(
      int descriptor,
      long byteSize,
      int slots,
      long stride,
      long inode,
      long device,
      long placesAt) {

    /** Nothing is lent. */
    public static final LendingMessage NONE = new LendingMessage(0, 0, 0, 0, 0, 0, 0);
  }
}

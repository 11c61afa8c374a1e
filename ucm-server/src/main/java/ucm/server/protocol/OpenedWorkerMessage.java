package ucm.server.protocol;

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
 */
public record OpenedWorkerMessage(
    int generation,
    String path,
    long byteSize,
    long inode,
    int slots,
    long stride,
    boolean daemonCopies,
    String hostReason) {

  /** Reads it. */
  public static OpenedWorkerMessage read(FrameReader body) throws ProtocolException {
    return new OpenedWorkerMessage(
        body.handle(),
        body.string(),
        body.u64(),
        body.u64(),
        body.u32(),
        body.u64(),
        body.u8() != 0,
        body.string());
  }

  /** Writes it. */
  public FrameWriter write(FrameWriter to) {
    return to.u32(generation)
        .string(path)
        .u64(byteSize)
        .u64(inode)
        .u32(slots)
        .u64(stride)
        .u8(daemonCopies ? 1 : 0)
        .string(hostReason);
  }
}

package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;

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
    @Wire(HANDLE) int generation,
    String path,
    long byteSize,
    long inode,
    int slots,
    long stride,
    boolean daemonCopies,
    String hostReason) {}

package ucm.pipeline.connector.engine;

import ucm.api.BlockIds;

/**
 * What a step loads and saves for one request. The arrays are not changed.
 *
 * @param requestId which request
 * @param loadIds blocks to load, root first, as rank 0 names them
 * @param loadBlocks the engine's block for each
 * @param saveIds blocks that the step completes, as rank 0 names them
 * @param saveBlocks the engine's block for each
 * @param contextBlocks the engine's blocks before the first one to save, root first: what that was
 *     computed from; empty when nothing is saved
 */
// Packed on purpose: thousands of numbers are no objects. These records are never compared.
@SuppressWarnings("ArrayRecordComponent")
public record RequestPlan(
    String requestId,
    BlockIds loadIds,
    int[] loadBlocks,
    BlockIds saveIds,
    int[] saveBlocks,
    int[] contextBlocks) {}

package ucm.bench.simulator;

import ucm.api.BlockIds;

/**
 * Blocks of a prompt and where they lie.
 *
 * @param ids as rank 0 names them
 * @param pages the engine's block for each
 */
// These are never compared.
@SuppressWarnings("ArrayRecordComponent")
record PageRun(BlockIds ids, int[] pages) {}

package ucm.bench.simulator;

/**
 * How an engine is set up.
 *
 * @param kvBlocks blocks of its KV memory
 * @param blockTokens tokens of a block
 * @param stepTokens most tokens of a step; longer prompts are computed in chunks
 * @param maxRunning most requests of a step
 * @param prefixCache whether KV memory keeps what finished requests left, as long as there is room
 */
public record EnginePlan(
    int kvBlocks, int blockTokens, int stepTokens, int maxRunning, boolean prefixCache) {

  PagedKvMemory memory() {
    return new PagedKvMemory(kvBlocks, blockTokens, prefixCache);
  }
}

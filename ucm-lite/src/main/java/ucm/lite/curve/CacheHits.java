package ucm.lite.curve;

/**
 * The hits of one cache over a whole trace. A hit is a block of the leading run of a request's
 * blocks that are all in the cache when the request arrives.
 *
 * @param capacityBlocks blocks the cache holds
 * @param hitBlocks blocks hit
 * @param hitTokens tokens hit: for each request {@code min(blockTokens * run, inputTokens)}
 */
public record CacheHits(long capacityBlocks, long hitBlocks, long hitTokens) {}

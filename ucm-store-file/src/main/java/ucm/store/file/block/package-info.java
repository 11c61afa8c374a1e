/**
 * Files of blocks: reading, writing, committing, quarantine. Shards of a transfer go in, outcomes
 * per shard come out. It does not decide what is removed, and asks {@link ucm.store.file.space}
 * for room.
 */
package ucm.store.file.block;

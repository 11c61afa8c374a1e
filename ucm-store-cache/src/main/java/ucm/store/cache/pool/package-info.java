/**
 * Slots of host memory: which shard is where, who reserves a slot, who waits for one.
 * Ids go in, slots come out. It neither copies bytes nor knows the next stage.
 */
package ucm.store.cache.pool;

/**
 * The store {@code Cache}: the stage between an engine's device memory and everything slower. It
 * keeps shards in a pool of host memory, writes them to the next stage in the background, and
 * serves loads from the pool or through it. It does not know what the next stage is.
 */
package ucm.store.cache;

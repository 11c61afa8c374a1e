/**
 * Locks in a directory that end with their owner: of writers, and of the one process that
 * collects. It also removes what dead writers left. Directories go in, leases come out; it knows
 * no shard.
 */
package ucm.store.file.lease;

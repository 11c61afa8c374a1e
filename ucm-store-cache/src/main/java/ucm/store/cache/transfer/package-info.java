/**
 * Dumps and loads: copies between device memory and slots, reads from and writes to the next
 * stage, write-behind and timeouts. Transfers come in, outcomes per shard come out.
 * Which slot a shard gets is the pool's business.
 */
package ucm.store.cache.transfer;

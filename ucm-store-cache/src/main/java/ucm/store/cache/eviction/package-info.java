/**
 * The order in which slots are given up: LRU, aged LRU and S3-FIFO over tables of blocks. Touches
 * go in, a victim comes out. It knows no memory and no thread.
 */
package ucm.store.cache.eviction;

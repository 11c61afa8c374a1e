/**
 * In which order a full cache gives up its entries: LRU and S3-FIFO. Uses go in, a victim comes out. The
 * stores evict with these classes and the simulation of traces runs them. It knows no memory and no
 * thread.
 */
package ucm.platform.eviction;

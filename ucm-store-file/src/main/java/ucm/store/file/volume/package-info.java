/**
 * A directory, and whether it, or the next stage, works: probes, circuit breakers, operations that take too long, free
 * space, and the threads of background work in each directory. Results go in, an open or closed breaker comes out. It
 * knows no block.
 */
package ucm.store.file.volume;

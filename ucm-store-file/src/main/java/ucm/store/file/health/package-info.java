/**
 * Whether a directory works: probes, circuit breakers, bounded operations, one executor for each
 * directory. Results of operations go in, an open or closed breaker comes out. It knows no block.
 */
package ucm.store.file.health;

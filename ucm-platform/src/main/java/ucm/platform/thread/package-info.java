/**
 * Threads that move shards: a pool that grows while its threads wait, processor affinity, and how
 * threads end; and threads for work that is listed meanwhile. Batches of numbered steps go in, completions come out. It does not know what a step
 * does.
 */
package ucm.platform.thread;

/**
 * Queues of reads and writes: by ordinary calls, by Linux aio and by io_uring. Requests go in as
 * vectors with an offset, completions come out in any order. It does not know what the bytes
 * mean.
 */
package ucm.platform.io;

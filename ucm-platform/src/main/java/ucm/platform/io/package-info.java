/**
 * Queues of reads and writes: by ordinary calls and by Linux aio. Requests go in as
 * vectors with an offset, completions come out in any order. It does not know what the bytes
 * mean.
 */
package ucm.platform.io;

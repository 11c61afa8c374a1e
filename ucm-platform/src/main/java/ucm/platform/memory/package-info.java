/**
 * Memory outside the heap: huge pages, lazily filled memory, files mapped by several processes,
 * copies with a checksum. Segments go in and out, and the caller that asked for a segment owns it. It
 * knows no store.
 */
package ucm.platform.memory;

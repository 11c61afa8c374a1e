/**
 * Which blocks go when room runs out, coldest and leaves first, and the access times that tell.
 * Counted room goes in, removed files come out. It never removes a block that is being read.
 */
package ucm.store.file.eviction;

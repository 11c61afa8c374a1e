/**
 * Tables keyed by 128-bit block ids, and the one hash of such ids. A table numbers its blocks; what is
 * known of a block lies in arrays of the caller by that number. It knows no store.
 */
package ucm.platform.table;

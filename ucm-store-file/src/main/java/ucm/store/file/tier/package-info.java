/**
 * A store of files as the upper of two tiers: what is not here is loaded from the next stage and kept, what is
 * dumped here is written to it, and nothing is evicted that it does not have. A store of files and the next
 * stage go in, a store comes out. It knows no store and no file.
 */
package ucm.store.file.tier;

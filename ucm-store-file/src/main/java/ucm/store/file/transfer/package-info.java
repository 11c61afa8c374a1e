/**
 * Tasks under way: groups of shards, their deadlines, what became of them. Transfers go in,
 * outcomes come out. It opens no file.
 */
package ucm.store.file.transfer;

/**
 * One pool for several processes of a host: the layout of the shared segment, its owners, locks
 * and recovery from a process that died (docs/shared-buffer.md). It offers what {@link
 * ucm.store.cache.pool} offers. It does not know what a task is.
 */
package ucm.store.cache.shared;

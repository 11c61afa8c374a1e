package ucm.store.cache.pool;

import org.jspecify.annotations.Nullable;

/**
 * A wait for a slot that another task fills; holds a reference to the slot.
 *
 * @param waiter is told of the result
 * @param index what the waiter calls the shard
 * @param next another wait for the same slot, or null
 */
record SlotWait(SlotWaiter waiter, int index, @Nullable SlotWait next) {}

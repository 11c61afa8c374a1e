package ucm.store.cache;

import org.jspecify.annotations.Nullable;

/**
 * Somebody here who waits for a slot to be filled; holds a reference.
 *
 * @param index what the waiter calls the shard
 * @param next who else waits for the same slot
 */
record Joined(SlotWaiter waiter, int index, @Nullable Joined next) {}

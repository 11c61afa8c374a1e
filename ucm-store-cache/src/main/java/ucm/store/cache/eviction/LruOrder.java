package ucm.store.cache.eviction;

/**
 * Least recently used: a block comes back as the newest when its last reference goes, so the oldest is
 * the victim.
 */
final class LruOrder implements EvictionOrder {

  private final EntryQueue idle;

  /** An empty order of entries below {@code capacity}. */
  LruOrder(int capacity) {
    idle = new EntryQueue(capacity);
  }

  @Override
  public void grow(int capacity) {
    idle.grow(capacity);
  }

  @Override
  public void enter(int entry, long high, long low) {}

  @Override
  public void use(int entry) {
    if (idle.has(entry)) {
      idle.remove(entry);
      idle.addNewest(entry);
    }
  }

  @Override
  public void busy(int entry) {
    idle.remove(entry);
  }

  @Override
  public void idle(int entry) {
    idle.addNewest(entry);
  }

  @Override
  public int victim() {
    return idle.oldest();
  }

  @Override
  public void evicted(int entry, long high, long low) {}

  @Override
  public void leave(int entry) {
    idle.remove(entry);
  }
}

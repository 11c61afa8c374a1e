package ucm.api;

import java.util.concurrent.atomic.AtomicReference;

/**
 * The life of a store as a small state machine: NEW, CONFIGURED, OPEN, CLOSED.
 *
 * <p>A store has one of these and tells it of each step; the wrong order is answered with an {@link
 * IllegalStateException}, use after close with {@link StoreClosedException}, both naming store and
 * state. Thread-safe.
 */
public final class StoreLife {

  private enum State {
    NEW,
    CONFIGURED,
    OPEN,
    CLOSED
  }

  private final String storeName;
  private final AtomicReference<State> state = new AtomicReference<>(State.NEW);

  /**
   * Starts in state NEW.
   *
   * @param storeName what messages call the store, for example {@code Posix}
   */
  public StoreLife(String storeName) {
    this.storeName = storeName;
  }

  /** See {@link Store#name}. */
  static String nameOf(Class<?> store) {
    StoreName name = store.getAnnotation(StoreName.class);
    if (name == null) {
      throw new IllegalStateException(
          store.getName() + " has no @StoreName, so it has no name: add the annotation");
    }
    return name.value();
  }

  /** NEW to CONFIGURED; called at the start of {@link Store#configure}. */
  public void configured() {
    step(State.NEW, State.CONFIGURED, "configure");
  }

  /** CONFIGURED to OPEN; called at the start of {@link Store#open}. */
  public void opened() {
    step(State.CONFIGURED, State.OPEN, "open");
  }

  /**
   * Any state to CLOSED; called at the start of {@link Store#close}.
   *
   * @return whether the store was open, so that there is something to release; true at most once
   */
  public boolean closed() {
    return state.getAndSet(State.CLOSED) == State.OPEN;
  }

  /** Whether the store is open now. */
  public boolean isOpen() {
    return state.getAcquire() == State.OPEN;
  }

  /**
   * Called first by every operation.
   *
   * @throws StoreClosedException when closed
   * @throws IllegalStateException when not opened yet
   */
  public void requireOpen() {
    State now = state.getAcquire();
    if (now == State.OPEN) {
      return;
    }
    if (now == State.CLOSED) {
      throw new StoreClosedException(storeName);
    }
    throw new IllegalStateException(
        "Store " + storeName + " is " + now + ", not OPEN: call configure, then open, before use");
  }

  private void step(State from, State to, String call) {
    State found = state.compareAndExchange(from, to);
    if (found != from) {
      throw new IllegalStateException(
          "Store " + storeName + " is " + found + ": " + call + " is allowed only when " + from);
    }
  }

  @Override
  public String toString() {
    return storeName + "[" + state.get() + "]";
  }
}

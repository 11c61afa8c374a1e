package ucm.store.valkey;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Lets shards go to the servers while the bytes under way are within a bound; the others wait, in
 * order. The bound on shards that wait is the store's, which accepts no more. Thread-safe.
 */
final class MoveWindow {

  private final long bound;
  private final Consumer<ShardMove> sender;
  private final Queue<ShardMove> waiting = new ArrayDeque<>();
  private long underWay;
  private boolean sending;

  MoveWindow(long bound, Consumer<ShardMove> sender) {
    this.bound = bound;
    this.sender = sender;
  }

  void add(ShardMove move) {
    synchronized (this) {
      waiting.add(move);
    }
    sendMore();
  }

  /** Called once for each shard that was sent, when it has been answered or given up. */
  void ended(ShardMove move) {
    synchronized (this) {
      underWay -= move.valueSize();
    }
    sendMore();
  }

  /** A loop on one thread at a time: sending may end at once, and calls this again. */
  private void sendMore() {
    ShardMove next = next(true);
    while (next != null) {
      if (next.begin()) {
        sender.accept(next);
      } else {
        ended(next);
      }
      next = next(false);
    }
  }

  private synchronized @Nullable ShardMove next(boolean begin) {
    if (begin && sending) {
      return null;
    }
    ShardMove first = waiting.peek();
    if (first == null || (underWay > 0 && underWay + first.valueSize() > bound)) {
      sending = false;
      return null;
    }
    sending = true;
    underWay += first.valueSize();
    return waiting.remove();
  }
}

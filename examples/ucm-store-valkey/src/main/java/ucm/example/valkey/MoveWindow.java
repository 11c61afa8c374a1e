package ucm.example.valkey;

import java.util.ArrayDeque;
import java.util.Queue;
import ucm.api.ShardOutcome;

/**
 * Lets shards go to the servers while the bytes under way are within a bound; the others wait, in
 * order. The bound on shards that wait is the store's, which accepts no more. Thread-safe.
 */
final class MoveWindow {

  /** Sends a shard. */
  interface Sender {
    void send(String key, ShardMove move);
  }

  private record Waiting(String key, ShardMove move) {}

  private final long bound;
  private final Sender sender;
  private final Queue<Waiting> waiting = new ArrayDeque<>();
  private long underWay;
  private boolean sending;

  MoveWindow(long bound, Sender sender) {
    this.bound = bound;
    this.sender = sender;
  }

  void add(String key, ShardMove move) {
    synchronized (this) {
      waiting.add(new Waiting(key, move));
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
    Waiting next = next(true);
    while (next != null) {
      if (next.move().nanosLeft() <= 0) {
        next.move().end(ShardOutcome.EXPIRED, null);
        ended(next.move());
      } else {
        sender.send(next.key(), next.move());
      }
      next = next(false);
    }
  }

  private synchronized Waiting next(boolean begin) {
    if (begin && sending) {
      return null;
    }
    Waiting first = waiting.peek();
    if (first == null || (underWay > 0 && underWay + first.move().valueSize() > bound)) {
      sending = false;
      return null;
    }
    sending = true;
    underWay += first.move().valueSize();
    return waiting.remove();
  }
}

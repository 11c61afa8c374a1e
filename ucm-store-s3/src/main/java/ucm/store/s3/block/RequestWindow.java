package ucm.store.s3.block;

import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/**
 * Lets requests go while fewer are under way than its width; the others wait, in order. A server that asks for
 * fewer requests halves the width, and answers widen it again. What may wait is bounded by the store, which
 * accepts no more tasks. Thread-safe.
 */
public final class RequestWindow {

  private final int widest;
  // Guarded by this, as is what follows.
  private final Queue<Runnable> waiting = new ArrayDeque<>();
  private int width;
  private int answers;
  private int underWay;
  private boolean sending;

  /** Lets so many requests go at the most. */
  public RequestWindow(int widest) {
    this.widest = widest;
    this.width = widest;
  }

  /** Takes a request, which is sent by running it; it may end at once. It calls {@link #ended} when it has ended. */
  void add(Runnable request) {
    synchronized (this) {
      waiting.add(request);
    }
    sendMore();
  }

  /** Called once for each that was sent. */
  void ended(boolean slowDown) {
    synchronized (this) {
      underWay--;
      answers++;
      if (slowDown) {
        width = Math.max(1, width / 2);
        answers = 0;
      } else if (answers >= width && width < widest) {
        width++;
        answers = 0;
      }
    }
    sendMore();
  }

  /** How many may be under way at present. */
  public synchronized int width() {
    return width;
  }

  /** A loop on one thread at a time: what is sent may end at once, and calls this again. */
  private void sendMore() {
    Runnable next = next(true);
    while (next != null) {
      next.run();
      next = next(false);
    }
  }

  private synchronized @Nullable Runnable next(boolean begin) {
    if (begin && sending) {
      return null;
    }
    if (waiting.isEmpty() || underWay >= width) {
      sending = false;
      return null;
    }
    sending = true;
    underWay++;
    return waiting.remove();
  }
}

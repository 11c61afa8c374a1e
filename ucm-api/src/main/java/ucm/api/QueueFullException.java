package ucm.api;

/** A bounded queue had no place; nothing of the request was started. */
public final class QueueFullException extends StoreException {

  private static final long serialVersionUID = 1L;

  /**
   * Names the queue.
   *
   * @param queue what waits in it, for example {@code Posix tasks}
   * @param depth its bound
   * @param key the configuration key that sets the bound
   */
  public QueueFullException(String queue, int depth, String key) {
    super(
        String.format(
            "the queue of %s is full (%s waiting): try again later, or raise %s",
            queue, depth, key));
  }
}

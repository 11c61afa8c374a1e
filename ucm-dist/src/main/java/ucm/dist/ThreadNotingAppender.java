package ucm.dist;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.LoggingEvent;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;

/** Notes which thread logs, because another one writes the line. */
final class ThreadNotingAppender extends AsyncAppender {

  private static final String THREAD_ID = "tid";

  @Override
  protected void preprocess(ILoggingEvent event) {
    super.preprocess(event);
    if (event instanceof LoggingEvent noting && noted(event) == null) {
      noting.addKeyValuePair(new KeyValuePair(THREAD_ID, Thread.currentThread().threadId()));
    }
  }

  /** The number of the thread that logged an event. */
  static long threadId(ILoggingEvent event) {
    Object noted = noted(event);
    return noted instanceof Long id ? id : Thread.currentThread().threadId();
  }

  private static @Nullable Object noted(ILoggingEvent event) {
    List<KeyValuePair> pairs = event.getKeyValuePairs();
    if (pairs != null) {
      for (KeyValuePair pair : pairs) {
        if (pair.key.equals(THREAD_ID)) {
          return pair.value;
        }
      }
    }
    return null;
  }
}

package ucm.cli.runtime;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.LoggingEvent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.KeyValuePair;

/** Notes which thread logs, by the kernel's number, because another one writes the line. */
final class ThreadNotingAppender extends AsyncAppender {

  private static final String THREAD_ID = "tid";
  private static final ThreadLocal<Long> KERNEL_ID =
      ThreadLocal.withInitial(ThreadNotingAppender::kernelId);

  @Override
  protected void preprocess(ILoggingEvent event) {
    super.preprocess(event);
    if (event instanceof LoggingEvent noting && noted(event) == null) {
      noting.addKeyValuePair(new KeyValuePair(THREAD_ID, KERNEL_ID.get()));
    }
  }

  /** The number of the thread that logged an event. */
  static long threadId(ILoggingEvent event) {
    Object noted = noted(event);
    return noted instanceof Long id ? id : KERNEL_ID.get();
  }

  /** {@code /proc/thread-self} is a link to {@code PID/task/TID}; without it, Java's own number. */
  private static long kernelId() {
    try {
      Path self = Files.readSymbolicLink(Path.of("/proc/thread-self"));
      return Long.parseLong(self.getFileName().toString());
    } catch (IOException | NumberFormatException e) {
      return Thread.currentThread().threadId();
    }
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

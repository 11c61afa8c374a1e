package ucm.cli.runtime;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.LoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.LayoutBase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Supplier;
import org.slf4j.event.KeyValuePair;

/**
 * A log line as the original writes it: {@code [<yyyy-mm-dd HH:MM:SS.ffffff>][UC][<D|I|W|E>] <message>
 * [<pid>,<tid>]}. The thread is the one that logs.
 */
final class LogLine extends LayoutBase<ILoggingEvent> {

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS", Locale.ROOT)
          .withZone(ZoneId.systemDefault());
  private static final String THREAD_ID = "tid";
  private static final ThreadLocal<Long> KERNEL_ID = ThreadLocal.withInitial(LogLine::kernelId);

  private final long pid = ProcessHandle.current().pid();
  private final Supplier<String> prefix;

  LogLine(Supplier<String> prefix) {
    this.prefix = prefix;
  }

  @Override
  public String doLayout(ILoggingEvent event) {
    StringBuilder line = new StringBuilder(160).append(prefix.get()).append('[');
    TIME.formatTo(event.getInstant(), line);
    line.append("][UC][").append(letter(event.getLevel())).append("] ");
    line.append(event.getFormattedMessage());
    line.append(" [").append(pid).append(',').append(threadId(event)).append("]\n");
    IThrowableProxy thrown = event.getThrowableProxy();
    if (thrown != null) {
      line.append(ThrowableProxyUtil.asString(thrown));
    }
    return line.toString();
  }

  private static char letter(Level level) {
    return switch (level.toInt()) {
      case Level.ERROR_INT -> 'E';
      case Level.WARN_INT -> 'W';
      case Level.INFO_INT -> 'I';
      default -> 'D';
    };
  }

  private static long threadId(ILoggingEvent event) {
    return noted(event).orElseGet(KERNEL_ID::get);
  }

  private static Optional<Long> noted(ILoggingEvent event) {
    List<KeyValuePair> pairs = event.getKeyValuePairs();
    return pairs == null
        ? Optional.empty()
        : pairs.stream()
            .filter(pair -> pair.key.equals(THREAD_ID) && pair.value instanceof Long)
            .map(pair -> (Long) pair.value)
            .findFirst();
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

  /** Notes which thread logs, by the kernel's number, because another one writes the line. */
  static final class Queue extends AsyncAppender {

    @Override
    protected void preprocess(ILoggingEvent event) {
      super.preprocess(event);
      if (event instanceof LoggingEvent noting && noted(event).isEmpty()) {
        noting.addKeyValuePair(new KeyValuePair(THREAD_ID, KERNEL_ID.get()));
      }
    }
  }
}

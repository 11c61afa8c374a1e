package ucm.cli.runtime;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.LayoutBase;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.function.Supplier;

/**
 * A log line as the original writes it: {@code [<yyyy-mm-dd HH:MM:SS.ffffff>][UC][<D|I|W|E>] <message>
 * [<pid>,<tid>]}. The thread is the one that logs.
 */
final class LogLine extends LayoutBase<ILoggingEvent> {

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS", Locale.ROOT)
          .withZone(ZoneId.systemDefault());

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
    line.append(" [").append(pid).append(',').append(ThreadNotingAppender.threadId(event));
    line.append("]\n");
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
}

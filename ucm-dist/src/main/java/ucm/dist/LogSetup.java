package ucm.dist;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.encoder.LayoutWrappingEncoder;
import ch.qos.logback.core.spi.ContextAwareBase;
import java.util.Locale;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs to the standard error in the line format of the original, at the level that {@code
 * UC_LOGGER_LEVEL} (or {@code UCM_LOG_LEVEL}) names, else at info. Found by logback through {@link
 * java.util.ServiceLoader} when the first line is logged.
 */
public final class LogSetup extends ContextAwareBase implements Configurator {

  /** For the {@link java.util.ServiceLoader}. */
  public LogSetup() {}

  @Override
  public ExecutionStatus configure(LoggerContext context) {
    LogLine line = new LogLine();
    line.setContext(context);
    line.start();
    LayoutWrappingEncoder<ILoggingEvent> encoder = new LayoutWrappingEncoder<>();
    encoder.setContext(context);
    encoder.setLayout(line);
    encoder.start();
    ConsoleAppender<ILoggingEvent> console = new ConsoleAppender<>();
    console.setContext(context);
    console.setTarget("System.err");
    console.setEncoder(encoder);
    console.start();
    ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
    root.setLevel(level(System.getenv()));
    root.addAppender(console);
    return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
  }

  /** Logs warnings and errors only, unless the environment names a level: stores are opened often. */
  static void onlyWarnings() {
    Map<String, String> environment = System.getenv();
    if (!environment.containsKey("UC_LOGGER_LEVEL") && !environment.containsKey("UCM_LOG_LEVEL")) {
      Logger root = LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
      ((ch.qos.logback.classic.Logger) root).setLevel(Level.WARN);
    }
  }

  static Level level(Map<String, String> environment) {
    String name = environment.get("UC_LOGGER_LEVEL");
    if (name == null) {
      name = environment.getOrDefault("UCM_LOG_LEVEL", "info");
    }
    // The original's word for warn is "warning".
    return Level.toLevel(name.toUpperCase(Locale.ROOT).replace("WARNING", "WARN"), Level.INFO);
  }
}

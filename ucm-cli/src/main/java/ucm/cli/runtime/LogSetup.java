package ucm.cli.runtime;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.Appender;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.encoder.LayoutWrappingEncoder;
import ch.qos.logback.core.spi.ContextAwareBase;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.cli.output.Progress;

/**
 * Logs in the line format of the original, to the standard error and, where {@code UCM_LOG_PATH} names
 * a folder, into files there, at the level that {@code UC_LOGGER_LEVEL} (or {@code UCM_LOG_LEVEL})
 * names, else at info. Found by logback through {@link java.util.ServiceLoader} when the first line is
 * logged.
 *
 * <p>Lines are written by a thread of their own. When they come faster than they can be written, the
 * less important ones are dropped rather than the caller be kept waiting.
 */
public final class LogSetup extends ContextAwareBase implements Configurator {

  // The original's word for warn is "warning".
  private static final Map<String, Level> LEVELS =
      Map.of(
          "trace", Level.TRACE,
          "debug", Level.DEBUG,
          "info", Level.INFO,
          "warn", Level.WARN,
          "warning", Level.WARN,
          "error", Level.ERROR,
          "off", Level.OFF);
  private static final int QUEUE_DEPTH = 16_384;
  private static final int MAX_FLUSH_MILLIS = 10_000;

  private static volatile @Nullable LoggerContext logging;

  /** For the {@link java.util.ServiceLoader}. */
  public LogSetup() {}

  @Override
  public ExecutionStatus configure(LoggerContext context) {
    configure(context, System.getenv());
    logging = context;
    return ExecutionStatus.DO_NOT_INVOKE_NEXT_IF_ANY;
  }

  static void configure(LoggerContext context, Map<String, String> environment) {
    ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
    root.setLevel(level(environment));
    ConsoleAppender<ILoggingEvent> console = new ConsoleAppender<>();
    console.setContext(context);
    console.setTarget("System.err");
    console.setEncoder(encoder(context, Progress::clearing));
    console.start();
    root.addAppender(inBackground(context, "console", console));
    LogFile.of(context, environment, encoder(context))
        .ifPresent(file -> root.addAppender(inBackground(context, "file", file)));
  }

  static LayoutWrappingEncoder<ILoggingEvent> encoder(LoggerContext context) {
    return encoder(context, () -> "");
  }

  private static LayoutWrappingEncoder<ILoggingEvent> encoder(
      LoggerContext context, Supplier<String> prefix) {
    LogLine line = new LogLine(prefix);
    line.setContext(context);
    line.start();
    LayoutWrappingEncoder<ILoggingEvent> encoder = new LayoutWrappingEncoder<>();
    encoder.setContext(context);
    encoder.setLayout(line);
    encoder.start();
    return encoder;
  }

  private static AsyncAppender inBackground(
      LoggerContext context, String name, Appender<ILoggingEvent> to) {
    AsyncAppender queue = new ThreadNotingAppender();
    queue.setContext(context);
    queue.setName("ucm-log-" + name);
    queue.setQueueSize(QUEUE_DEPTH);
    queue.setNeverBlock(true);
    queue.setMaxFlushTime(MAX_FLUSH_MILLIS);
    queue.addAppender(to);
    queue.start();
    return queue;
  }

  /** Writes the lines that wait, before the process ends; nothing is logged afterwards. */
  public static void finish() {
    LoggerContext context = logging;
    if (context != null) {
      context.stop();
    }
  }

  /** From now on a logging thread waits when lines come faster than they can be written, and none is dropped. */
  public static void keepAllLines() {
    ch.qos.logback.classic.Logger root =
        (ch.qos.logback.classic.Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
    root.iteratorForAppenders()
        .forEachRemaining(
            appender -> {
              if (appender instanceof AsyncAppender queue) {
                queue.setNeverBlock(false);
                queue.setDiscardingThreshold(0);
              }
            });
  }

  /** Logs warnings and errors only, unless the environment names a level: stores are opened often. */
  public static void onlyWarnings() {
    Map<String, String> environment = System.getenv();
    if (!environment.containsKey("UC_LOGGER_LEVEL") && !environment.containsKey("UCM_LOG_LEVEL")) {
      Logger root = LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
      ((ch.qos.logback.classic.Logger) root).setLevel(Level.WARN);
    }
  }

  static Level level(Map<String, String> environment) {
    return LEVELS.getOrDefault(word(environment), Level.INFO);
  }

  /** What is wrong with the level that the environment names, for people; or nothing. */
  public static Optional<String> levelProblem(Map<String, String> environment) {
    String word = word(environment);
    return LEVELS.containsKey(word)
        ? Optional.empty()
        : Optional.of(
            variable(environment)
                + " is debug, info, warning or error; found "
                + word
                + ", so info is used");
  }

  private static String word(Map<String, String> environment) {
    return environment.getOrDefault(variable(environment), "info").strip().toLowerCase(Locale.ROOT);
  }

  private static String variable(Map<String, String> environment) {
    return environment.containsKey("UC_LOGGER_LEVEL") ? "UC_LOGGER_LEVEL" : "UCM_LOG_LEVEL";
  }
}

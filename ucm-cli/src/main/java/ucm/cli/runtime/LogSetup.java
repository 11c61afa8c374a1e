package ucm.cli.runtime;

import ch.qos.logback.classic.AsyncAppender;
import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.Configurator;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.classic.spi.LoggingEvent;
import ch.qos.logback.classic.spi.ThrowableProxyUtil;
import ch.qos.logback.core.Appender;
import ch.qos.logback.core.ConsoleAppender;
import ch.qos.logback.core.LayoutBase;
import ch.qos.logback.core.encoder.LayoutWrappingEncoder;
import ch.qos.logback.core.rolling.FixedWindowRollingPolicy;
import ch.qos.logback.core.rolling.RollingFileAppender;
import ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy;
import ch.qos.logback.core.spi.ContextAware;
import ch.qos.logback.core.spi.ContextAwareBase;
import ch.qos.logback.core.spi.LifeCycle;
import ch.qos.logback.core.util.Duration;
import ch.qos.logback.core.util.FileSize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.KeyValuePair;
import ucm.cli.output.Progress;
import ucm.pipeline.connector.statistics.PrivateFiles;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.connector.statistics.WriterName;

/**
 * Logs in the line format of the original, to the standard error and, where {@code UCM_LOG_PATH} names
 * a folder, into files there, at the level that {@code UC_LOGGER_LEVEL} (or {@code UCM_LOG_LEVEL})
 * names, else at info. Found by logback through {@link java.util.ServiceLoader} when the first line is
 * logged.
 *
 * <p>Lines are written by a thread of their own. When they come faster than they can be written, the
 * less important ones are dropped rather than the caller be kept waiting. The files are {@code
 * ucm-<pid>.log}, begun again at {@code UCM_LOG_MAX_SIZE} MiB (default 5), with {@code UCM_LOG_MAX_FILES}
 * files kept (default 10), the one being written included.
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
  private static final String QUEUE = "ucm-log-";
  private static final String CONSOLE = "console";
  private static final long DAEMON_BYTES = 16L << 20;
  private static final int DAEMON_FILES = 3;
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
    console.setTarget("System.err");
    console.setEncoder(encoder(context, Progress::clearing));
    started(context, console);
    root.addAppender(inBackground(context, CONSOLE, console));
    file(context, environment)
        .ifPresent(file -> root.addAppender(inBackground(context, "file", file)));
  }

  /** Sets the context of what belongs to the log, and starts it. */
  private static <T extends ContextAware & LifeCycle> T started(LoggerContext context, T part) {
    part.setContext(context);
    part.start();
    return part;
  }

  private static LayoutWrappingEncoder<ILoggingEvent> encoder(
      LoggerContext context, Supplier<String> prefix) {
    LayoutWrappingEncoder<ILoggingEvent> encoder = new LayoutWrappingEncoder<>();
    encoder.setLayout(started(context, new LogLine(prefix)));
    return started(context, encoder);
  }

  private static AsyncAppender inBackground(
      LoggerContext context, String name, Appender<ILoggingEvent> to) {
    AsyncAppender queue = new LogLine.Queue();
    queue.setContext(context);
    queue.setName(QUEUE + name);
    queue.setQueueSize(QUEUE_DEPTH);
    queue.setNeverBlock(true);
    queue.setMaxFlushTime(MAX_FLUSH_MILLIS);
    queue.addAppender(to);
    queue.start();
    return queue;
  }

  /** The files, when the environment asks for them and they can be written. */
  static Optional<RollingFileAppender<ILoggingEvent>> file(
      LoggerContext context, Map<String, String> environment) {
    String folder = environment.getOrDefault("UCM_LOG_PATH", "");
    if (folder.isBlank()) {
      return Optional.empty();
    }
    String wanted = "ucm-" + ProcessHandle.current().pid();
    try {
      WriterName held = WriterName.take(Path.of(folder), wanted);
      String name = folder + "/" + held;
      try {
        PrivateFiles.open(Path.of(name + ".log")).close();
      } catch (IOException e) {
        held.close();
        throw e;
      }
      TraceOptions limits = TraceOptions.of(environment);
      PrivateAppender file = new PrivateAppender(held, opened -> {});
      return Optional.of(
          rolling(
              context,
              file,
              name + ".log",
              name,
              ".%i.log",
              limits.maxFileBytes(),
              limits.maxFiles()));
    } catch (IOException | InvalidPathException e) {
      System.err.println(
          String.format(
              "ucm: cannot write the log file %s/%s.log that UCM_LOG_PATH asks for: %s; logging to"
                  + " the standard error only",
              folder, wanted, e.getMessage()));
      return Optional.empty();
    }
  }

  /**
   * From now on the lines go into a file instead of to the standard error. It is begun again at 16 MiB, and the
   * two before it are kept as {@code FILE.1} and {@code FILE.2}.
   *
   * @param opened is called with each file that is begun, for what does not come from the log
   * @throws IOException when it cannot be written; then nothing has changed
   */
  public static void intoFile(Path path, Consumer<Path> opened) throws IOException {
    intoFile((LoggerContext) LoggerFactory.getILoggerFactory(), path, DAEMON_BYTES, opened);
  }

  static void intoFile(LoggerContext context, Path path, long maxBytes, Consumer<Path> opened)
      throws IOException {
    PrivateFiles.open(path).close();
    ch.qos.logback.classic.Logger root = context.getLogger(Logger.ROOT_LOGGER_NAME);
    Appender<ILoggingEvent> console = root.getAppender(QUEUE + CONSOLE);
    if (console != null) {
      root.detachAppender(console);
      console.stop();
    }
    String name = path.toString();
    PrivateAppender file = new PrivateAppender(null, opened);
    root.addAppender(
        inBackground(
            context, "daemon", rolling(context, file, name, name, ".%i", maxBytes, DAEMON_FILES)));
  }

  private static RollingFileAppender<ILoggingEvent> rolling(
      LoggerContext context,
      PrivateAppender file,
      String path,
      String stem,
      String ending,
      long maxBytes,
      int maxFiles) {
    file.setName("ucm-log");
    file.setFile(path);
    file.setEncoder(encoder(context, () -> ""));
    FixedWindowRollingPolicy names = new WideWindow();
    names.setParent(file);
    names.setFileNamePattern(stem.replace("%", "\\%") + ending);
    names.setMinIndex(1);
    names.setMaxIndex(Math.max(1, maxFiles - 1));
    file.setRollingPolicy(started(context, names));
    SizeBasedTriggeringPolicy<ILoggingEvent> size = new SizeBasedTriggeringPolicy<>();
    size.setMaxFileSize(new FileSize(maxBytes));
    // At every line, not once a minute.
    size.setCheckIncrement(Duration.buildByMilliseconds(0));
    file.setTriggeringPolicy(started(context, size));
    return started(context, file);
  }

  /** Makes each file for its owner alone before Logback opens it, and tells of it. */
  private static final class PrivateAppender extends RollingFileAppender<ILoggingEvent> {
    private final @Nullable WriterName held;
    private final Consumer<Path> opened;

    PrivateAppender(@Nullable WriterName held, Consumer<Path> opened) {
      this.held = held;
      this.opened = opened;
    }

    @Override
    public void openFile(String name) throws IOException {
      PrivateFiles.open(Path.of(name)).close();
      super.openFile(name);
      opened.accept(Path.of(name));
    }

    @Override
    public void stop() {
      super.stop();
      if (held != null) {
        try {
          held.close();
        } catch (IOException e) {
          addWarn("the name of the log was not given back", e);
        }
      }
    }
  }

  /** Logback stops at 20 files; operators of the original keep more. */
  private static final class WideWindow extends FixedWindowRollingPolicy {
    @Override
    protected int getMaxWindowSize() {
      return Integer.MAX_VALUE / 2;
    }
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
    root()
        .iteratorForAppenders()
        .forEachRemaining(
            appender -> {
              if (appender instanceof AsyncAppender queue) {
                queue.setNeverBlock(false);
                queue.setDiscardingThreshold(0);
              }
            });
  }

  /** What is logged now: debug, info, warning or error. */
  public static String level() {
    Level now = root().getEffectiveLevel();
    return now.equals(Level.WARN) ? "warning" : now.toString().toLowerCase(Locale.ROOT);
  }

  /**
   * Logs at another level from now on.
   *
   * @param word as in {@code UC_LOGGER_LEVEL}; empty for what the environment says
   * @throws IllegalArgumentException when it is none of them
   */
  public static void setLevel(String word) {
    Level level =
        word.isEmpty() ? level(System.getenv()) : LEVELS.get(word.toLowerCase(Locale.ROOT));
    if (level == null) {
      throw new IllegalArgumentException(
          "a log level is debug, info, warning or error; found " + word);
    }
    root().setLevel(level);
  }

  private static ch.qos.logback.classic.Logger root() {
    return (ch.qos.logback.classic.Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME);
  }

  static Level level(Map<String, String> environment) {
    return LEVELS.getOrDefault(word(environment), Level.INFO);
  }

  /** What is wrong with what the environment says of logs, for people. */
  public static List<String> problems(Map<String, String> environment) {
    List<String> problems = new ArrayList<>(TraceOptions.problems(environment));
    levelProblem(environment).ifPresent(problems::addFirst);
    return problems;
  }

  /** What is wrong with the level; or nothing. */
  static Optional<String> levelProblem(Map<String, String> environment) {
    String word = word(environment);
    return LEVELS.containsKey(word)
        ? Optional.empty()
        : Optional.of(
            "%s is debug, info, warning or error; found %s, so info is used"
                .formatted(variable(environment), word));
  }

  private static String word(Map<String, String> environment) {
    return environment.getOrDefault(variable(environment), "info").strip().toLowerCase(Locale.ROOT);
  }

  private static String variable(Map<String, String> environment) {
    return environment.containsKey("UC_LOGGER_LEVEL") ? "UC_LOGGER_LEVEL" : "UCM_LOG_LEVEL";
  }

  /**
   * A log line as the original writes it: {@code [<yyyy-mm-dd HH:MM:SS.ffffff>][UC][<D|I|W|E>] <message>
   * [<pid>,<tid>]}. The thread is the one that logs.
   */
  static final class LogLine extends LayoutBase<ILoggingEvent> {

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
}

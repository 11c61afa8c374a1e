package ucm.cli.runtime;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.encoder.Encoder;
import ch.qos.logback.core.rolling.FixedWindowRollingPolicy;
import ch.qos.logback.core.rolling.RollingFileAppender;
import ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy;
import ch.qos.logback.core.util.Duration;
import ch.qos.logback.core.util.FileSize;
import java.io.IOException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import ucm.pipeline.connector.statistics.PrivateFiles;

/**
 * The log as files: {@code ucm-<pid>.log} in the folder {@code UCM_LOG_PATH}, begun again at {@code
 * UCM_LOG_MAX_SIZE} MiB (default 5), with {@code UCM_LOG_MAX_FILES} files kept (default 10), the one
 * being written included.
 */
final class LogFile {

  private static final int MAX_FILES = 10;
  private static final int MAX_SIZE_MIB = 5;

  private LogFile() {}

  /** The files, when the environment asks for them and they can be written. */
  static Optional<RollingFileAppender<ILoggingEvent>> of(
      LoggerContext context, Map<String, String> environment, Encoder<ILoggingEvent> encoder) {
    String folder = environment.getOrDefault("UCM_LOG_PATH", "");
    if (folder.isBlank()) {
      return Optional.empty();
    }
    String name = folder + "/ucm-" + ProcessHandle.current().pid();
    try {
      PrivateFiles.createFolder(Path.of(folder));
      PrivateFiles.open(Path.of(name + ".log")).close();
    } catch (IOException | InvalidPathException e) {
      System.err.println(
          String.format(
              "ucm: cannot write the log file %s.log that UCM_LOG_PATH asks for: %s; logging to the"
                  + " standard error only",
              name, e.getMessage()));
      return Optional.empty();
    }
    RollingFileAppender<ILoggingEvent> file = new PrivateAppender();
    file.setContext(context);
    file.setName("ucm-log");
    file.setFile(name + ".log");
    file.setEncoder(encoder);
    FixedWindowRollingPolicy names = new WideWindow();
    names.setContext(context);
    names.setParent(file);
    names.setFileNamePattern(name.replace("%", "\\%") + ".%i.log");
    names.setMinIndex(1);
    names.setMaxIndex(Math.max(1, number(environment, "UCM_LOG_MAX_FILES", MAX_FILES) - 1));
    names.start();
    SizeBasedTriggeringPolicy<ILoggingEvent> size = new SizeBasedTriggeringPolicy<>();
    size.setContext(context);
    size.setMaxFileSize(
        new FileSize((long) number(environment, "UCM_LOG_MAX_SIZE", MAX_SIZE_MIB) << 20));
    // At every line, not once a minute.
    size.setCheckIncrement(Duration.buildByMilliseconds(0));
    size.start();
    file.setRollingPolicy(names);
    file.setTriggeringPolicy(size);
    file.start();
    return Optional.of(file);
  }

  private static int number(Map<String, String> environment, String name, int otherwise) {
    try {
      int found = Integer.parseInt(environment.getOrDefault(name, "").strip());
      return found < 1 ? otherwise : found;
    } catch (NumberFormatException e) {
      return otherwise;
    }
  }

  /** Makes each file for its owner alone before Logback opens it. */
  private static final class PrivateAppender extends RollingFileAppender<ILoggingEvent> {
    @Override
    public void openFile(String name) throws IOException {
      PrivateFiles.open(Path.of(name)).close();
      super.openFile(name);
    }
  }

  /** Logback stops at 20 files; operators of the original keep more. */
  private static final class WideWindow extends FixedWindowRollingPolicy {
    @Override
    protected int getMaxWindowSize() {
      return Integer.MAX_VALUE / 2;
    }
  }
}

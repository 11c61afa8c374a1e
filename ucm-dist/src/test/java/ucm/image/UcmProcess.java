package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Runs the real {@code bin/ucm} of the image, on a PATH without Java. */
final class UcmProcess {

  static final Path IMAGE = Path.of(System.getProperty("ucm.image"));

  /** For {@code UCM_JAVA_OPTS}: most commands end before the second compiler pays. */
  static final String JAVA_OPTIONS = "-XX:TieredStopAtLevel=1";

  private UcmProcess() {}

  record Ended(int exitCode, String out, String err) {

    JsonNode json() {
      return JsonMapper.builder().build().readTree(out);
    }

    String all() {
      return out + err;
    }

    /** This, of a program that ended well. */
    Ended requireOk() {
      assertThat(exitCode).as(all()).isZero();
      return this;
    }
  }

  /** Starts the command of an image; the caller waits for it. */
  static Process start(Path image, Map<String, String> environment, Object... args) {
    // A build in the background has its children ignore Ctrl-C; a user's shell does not.
    List<String> command = new ArrayList<>(List.of("/usr/bin/env", "--default-signal=INT"));
    command.add(image.resolve("bin/ucm").toString());
    for (Object arg : args) {
      command.add(arg.toString());
    }
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().clear();
    builder.environment().put("PATH", "/usr/bin:/bin");
    builder.environment().put("JAVA_HOME", "/nowhere");
    builder.environment().put("UCM_JAVA_OPTS", JAVA_OPTIONS);
    builder.environment().putAll(environment);
    try {
      return builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs the command to its end. */
  static Ended run(Object... args) {
    return finish(start(IMAGE, Map.of(), args));
  }

  /** Runs any program to its end; what it writes is in its order. */
  static Ended program(Object... command) throws IOException {
    List<String> words = Stream.of(command).map(String::valueOf).toList();
    return finish(new ProcessBuilder(words).redirectErrorStream(true).start());
  }

  static Ended finish(Process process) {
    CompletableFuture<String> out = read(process.getInputStream());
    CompletableFuture<String> err = read(process.getErrorStream());
    try {
      process.getOutputStream().close();
      if (!process.waitFor(10, TimeUnit.MINUTES)) {
        process.destroyForcibly();
        throw new AssertionError("did not end within ten minutes: " + out.join() + err.join());
      }
      return new Ended(process.exitValue(), out.join(), err.join());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      process.destroyForcibly();
      throw new AssertionError(e);
    }
  }

  /** On a thread of its own: of the common pool's there may be but one, and both streams can fill. */
  private static CompletableFuture<String> read(InputStream stream) {
    return CompletableFuture.supplyAsync(
        () -> {
          try (stream) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        },
        reading -> {
          Thread _ = Thread.ofPlatform().daemon().start(reading);
        });
  }
}

package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A mounted FUSE file system that fails and stalls on demand: see {@code sick_fs.c}. Whatever happens
 * to the test, the end of the pipe of commands ends the file system, so that nobody hangs for good.
 */
final class SickMount implements AutoCloseable {

  private static final long PATIENCE_S = TestStores.PATIENCE.toSeconds();

  /** Where it is mounted. */
  final Path directory;

  /** What it passes calls on to. */
  final Path backing;

  private final Process process;
  private final Writer commands;
  private final CompletableFuture<Boolean> mounted = new CompletableFuture<>();
  private final Semaphore done = new Semaphore(0);
  private final Map<String, Semaphore> stalled = new ConcurrentHashMap<>();

  private SickMount(Path directory, Path backing, Process process) {
    this.directory = directory;
    this.backing = backing;
    this.process = process;
    this.commands = process.outputWriter();
    Thread.ofPlatform().daemon().name("test-sick-mount").start(this::listen);
  }

  /** Compiles the file system into a folder; skips the test where that cannot be done. */
  static Path compile(Path folder) throws Exception {
    assumeTrue(Files.isWritable(Path.of("/dev/fuse")), "no /dev/fuse that may be written");
    return CProgram.sickFs(folder);
  }

  /** Mounts below a folder; skips the test where that cannot be done. */
  static SickMount in(Path parent, Path program) throws Exception {
    return start(parent, program, null);
  }

  /** The same, with a log of all that is written. */
  static SickMount logging(Path parent, Path program, Path log) throws Exception {
    return start(parent, program, log);
  }

  private static SickMount start(Path parent, Path program, @Nullable Path log) throws Exception {
    Path backing = Files.createDirectory(parent.resolve("backing"));
    Path directory = Files.createDirectory(parent.resolve("mount"));
    Path complaint = parent.resolve("sick_fs.err");
    ProcessBuilder builder =
        new ProcessBuilder(program.toString(), backing.toString(), directory.toString());
    if (log != null) {
      builder.command().add(log.toString());
    }
    Process process = builder.redirectError(complaint.toFile()).start();
    SickMount mount = new SickMount(directory, backing, process);
    if (!mount.mounted.get(PATIENCE_S, TimeUnit.SECONDS)) {
      // A program that is wrong fails to compile; what is left is what this machine does not allow.
      abort("cannot mount FUSE file systems here: " + Files.readString(complaint));
    }
    return mount;
  }

  private void listen() {
    try (BufferedReader events = process.inputReader()) {
      for (String line = events.readLine(); line != null; line = events.readLine()) {
        if (line.startsWith("stalled ")) {
          stalledAt(line.substring("stalled ".length())).release();
        } else if (line.equals("mounted")) {
          mounted.complete(true);
        } else if (line.equals("done")) {
          done.release();
        } else {
          throw new AssertionError(line);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      mounted.complete(false);
    }
  }

  private Semaphore stalledAt(String call) {
    return stalled.computeIfAbsent(call, _ -> new Semaphore(0));
  }

  /** From now on, it passes calls on; those that it holds as well. */
  void heal() throws Exception {
    obey("ok");
  }

  /** From now on, some calls fail, or all when none is named. */
  void fail(int errno, String... calls) throws Exception {
    obey("fail " + errno + " " + String.join(",", calls));
  }

  /** From now on, it holds some calls, or all when none is named. */
  void stall(String... calls) throws Exception {
    stalled.values().forEach(Semaphore::drainPermits);
    obey("stall " + String.join(",", calls));
  }

  /** From now on, some calls take longer, or all when none is named. */
  void delay(int millis, String... calls) throws Exception {
    obey("delay " + millis + " " + String.join(",", calls));
  }

  /** From now on, reads and writes move a part of what they are asked for. */
  void fallShort() throws Exception {
    obey("short");
  }

  /** Notes a number in the log. */
  void mark(long number) throws Exception {
    obey("mark " + number);
  }

  private synchronized void obey(String command) throws Exception {
    commands.write(command + "\n");
    commands.flush();
    assertThat(done.tryAcquire(PATIENCE_S, TimeUnit.SECONDS)).as(command).isTrue();
  }

  /** Waits until it holds so many calls of a kind more. */
  void awaitStalled(String call, int count) throws InterruptedException {
    assertThat(stalledAt(call).tryAcquire(count, PATIENCE_S, TimeUnit.SECONDS))
        .as("%d calls of %s are stalled", count, call)
        .isTrue();
  }

  /** Whether it holds, or has held, a call of a kind since it was told to. */
  boolean hasStalled(String call) {
    return stalledAt(call).availablePermits() > 0;
  }

  @Override
  public void close() throws IOException {
    commands.close();
    // Only a file system that does not end makes this wait long.
    process.onExit().orTimeout(PATIENCE_S, TimeUnit.SECONDS).join();
  }
}

package ucm.store.nfs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The test's side of a {@link NodeProcess}. */
final class Node implements AutoCloseable {

  private static final String END = "end";

  private final Process process;
  private final PrintWriter commands;
  private final BlockingQueue<String> said = new LinkedBlockingQueue<>();
  private final Thread reader;

  Node(Path directory, String... settings) throws IOException {
    process = NodeProcess.start(directory, settings);
    commands = new PrintWriter(process.getOutputStream(), true, StandardCharsets.UTF_8);
    reader = Thread.ofPlatform().name("node-reader").start(this::read);
  }

  private void read() {
    try (BufferedReader lines = process.inputReader()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        said.add(line);
      }
    } catch (IOException e) {
      said.add("cannot read: " + e);
    }
    said.add(END);
  }

  /** Has it do something. */
  void order(String command, long seed, int count) {
    commands.println(command + " " + seed + " " + count);
  }

  /** Waits until it says something that begins so; returns all that it said until then. */
  List<String> until(String prefix) throws InterruptedException {
    List<String> lines = new ArrayList<>();
    while (lines.isEmpty() || !lines.getLast().startsWith(prefix)) {
      String line = said.poll(TestNfs.PATIENCE.toSeconds() * 2, TimeUnit.SECONDS);
      assertThat(line).as("waiting for %s after %s", prefix, lines).isNotNull().isNotEqualTo(END);
      assertThat(line).doesNotStartWith("wrong");
      lines.add(line);
    }
    return lines;
  }

  /** What it said before it ended. */
  List<String> rest() throws InterruptedException {
    reader.join();
    List<String> lines = new ArrayList<>(said);
    lines.remove(END);
    return lines;
  }

  /** Does it and waits for the end. */
  List<String> does(String command, long seed, int count) throws InterruptedException {
    order(command, seed, count);
    return until("done " + command + " " + seed);
  }

  void kill() throws InterruptedException {
    process.toHandle().destroyForcibly();
    assertThat(process.waitFor()).isEqualTo(137);
  }

  /** Ends it, well. */
  void end() throws InterruptedException {
    commands.close();
    assertThat(process.waitFor(TestNfs.PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isZero();
  }

  @Override
  public void close() {
    process.toHandle().destroyForcibly();
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.testkit.TestProcess;

/**
 * Ranks of an engine, and the daemon, are killed with SIGKILL at random moments, again and again: the others
 * go on, every loaded word is compared, and afterwards nothing is held and nothing is left in /dev/shm.
 * {@code -Pfull} kills 200 times among 32 ranks; {@code -Ducm.seed} repeats a run.
 */
@Timeout(value = 60, unit = TimeUnit.MINUTES)
final class RemoteKillTest {

  private static final int BLOCK = RemoteRank.BLOCK_TOKENS;
  private static final int SLOTS = 64;
  private static final int PROMPTS = 24;
  private static final long REST_NANOS = TimeUnit.SECONDS.toNanos(61);
  private static final int SPINS = 3_000_000;

  @TempDir private Path folder;

  private final long seed = Long.getLong("ucm.seed", System.nanoTime());
  private final Random random = new Random(seed);

  /** Some prompts that have a beginning in common with others. */
  private int[] prompt() {
    int which = random.nextInt(PROMPTS);
    return IntStream.range(0, (2 + which % 5) * BLOCK + 1)
        .map(at -> at < BLOCK ? at : 100 * which + at)
        .toArray();
  }

  /** Segments of the daemon of this test. */
  private long segments() throws IOException {
    String names = ServerDirectory.segmentNames(TestDaemon.socket(folder));
    try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
      return files.filter(file -> file.getFileName().toString().startsWith(names)).count();
    }
  }

  @AfterEach
  void leavesNoSegments() throws IOException {
    assertThat(segments()).as("segments, seed %d", seed).isZero();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void oneOfFourRanksIsKilled(boolean mla) throws Exception {
    killRanks(4, mla, 4);
  }

  @Tag("full")
  @Test
  void oneOfThirtyTwoRanksIsKilled() throws Exception {
    killRanks(32, true, 200);
  }

  private void killRanks(int ranks, boolean mla, int kills) throws Exception {
    long slots = (long) SLOTS * (mla ? 1 : ranks);
    try (TestDaemon daemon = new TestDaemon(folder, slots * RemoteRank.BYTES)) {
      try (RemoteEngine engine =
          new RemoteEngine(daemon.socket, daemon.yaml, "e", ranks, mla).withProcesses()) {
        long loaded = 0;
        for (int kill = 0; kill < kills; kill++) {
          int victim = random.nextInt(ranks);
          int spins = random.nextInt(SPINS);
          Thread killer = after(spins, () -> engine.sendKill(victim));
          int served = engine.serve(prompt());
          while (served >= 0) {
            loaded += served;
            served = engine.serve(prompt());
          }
          killer.join();
          engine.replace(victim);
          // Nothing is under way, so that what the dead one may have copied may be used again.
          daemon.nanos.addAndGet(REST_NANOS);
        }
        for (int i = 0; i < PROMPTS; i++) {
          loaded += engine.serve(prompt());
        }
        assertThat(loaded).as("tokens loaded, seed %d", seed).isPositive();
        requireNothingHeld(daemon, engine);
      }
      awaitNoEngine(daemon.socket);
      assertThat(segments()).as("segments, seed %d", seed).isZero();
    }
  }

  private static Thread after(int spins, Runnable kill) {
    return Thread.ofPlatform()
        .start(
            () -> {
              for (int i = 0; i < spins; i++) {
                Thread.onSpinWait();
              }
              kill.run();
            });
  }

  private void requireNothingHeld(TestDaemon daemon, RemoteEngine engine) throws Exception {
    assertThat(engine.scheduler.plan(List.of()).requests()).isEmpty();
    JsonNode figures = daemon.status().get("engines").get(0);
    // A plan that is answered late, as on a busy machine, is carried out all the same.
    while (figures.get("holds").asInt()
            + figures.get("saves").asInt()
            + figures.get("open_requests").asInt()
        > 0) {
      figures = daemon.status().get("engines").get(0);
    }
    daemon.nanos.addAndGet(REST_NANOS);
    while (figures.get("resting_slots").asInt() > 0) {
      figures = daemon.status().get("engines").get(0);
    }
    assertThat(figures.get("free_slots")).as("seed %d", seed).isEqualTo(figures.get("slots"));
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theDaemonIsKilled(boolean mla) throws Exception {
    killDaemon(mla, 2);
  }

  @Tag("full")
  @Test
  void theDaemonIsKilledManyTimes() throws Exception {
    killDaemon(false, 200);
  }

  private void killDaemon(boolean mla, int kills) throws Exception {
    Path socket = TestDaemon.socket(folder);
    TestProcess daemon = daemon();
    try (RemoteEngine engine =
        new RemoteEngine(socket, TestDaemon.yaml(folder, "Posix"), "e", 2, mla).withRanks()) {
      for (int kill = 0; kill < kills; kill++) {
        Thread killer = after(random.nextInt(SPINS), daemon::sendKill);
        while (killer.isAlive()) {
          assertThat(engine.serve(prompt())).isNotNegative();
        }
        assertThat(engine.serve(prompt())).isNotNegative();
        daemon.close();
        daemon = daemon();
        while (engine.serve(prompt()) == 0) {
          Thread.onSpinWait();
        }
        assertThat(segments()).as("those of the dead are gone").isEqualTo(mla ? 1 : 2);
      }
    }
    awaitNoEngine(socket);
    daemon.close();
  }

  /** A daemon that is stopped holds the engine up for some seconds once; then it is left alone. */
  @Test
  void theDaemonHangs() throws Exception {
    Path socket = TestDaemon.socket(folder);
    TestProcess daemon = daemon();
    try (RemoteEngine engine =
        new RemoteEngine(socket, TestDaemon.yaml(folder, "Posix"), "e", 2, false).withRanks()) {
      while (engine.serve(prompt()) == 0) {
        Thread.onSpinWait();
      }
      String pid = status(socket).get("pid").asString();
      signal("-STOP", pid);
      for (int i = 0; i < 100; i++) {
        assertThat(engine.serve(prompt())).isNotNegative();
      }
      signal("-CONT", pid);
      while (engine.serve(prompt()) == 0) {
        Thread.onSpinWait();
      }
    }
    awaitNoEngine(socket);
    daemon.close();
  }

  private static void awaitNoEngine(Path socket) throws IOException {
    while (!status(socket).get("engines").isEmpty()) {
      Thread.onSpinWait();
    }
  }

  private TestProcess daemon() throws IOException {
    TestProcess process =
        new TestProcess(TestDaemon.class, folder.toString(), "" + SLOTS * 2 * RemoteRank.BYTES);
    String line = process.line();
    while (line != null && !line.equals("@ready")) {
      line = process.line();
    }
    assertThat(line).as("the daemon listens").isNotNull();
    Thread _ = Thread.ofPlatform().daemon().start(() -> drain(process));
    return process;
  }

  private static void drain(TestProcess process) {
    try {
      while (process.line() != null) {
        // Its log; unread, it would fill the pipe.
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static JsonNode status(Path socket) throws IOException {
    return JsonMapper.shared().readTree(Daemon.status(socket));
  }

  private static void signal(String which, String pid) throws Exception {
    assertThat(new ProcessBuilder("kill", which, pid).start().waitFor()).isZero();
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.server.TestClient.Found;
import ucm.server.TestClient.Planned;
import ucm.testkit.TestProcess;

/**
 * Ranks of an engine, and the daemon, are killed with SIGKILL at random moments, again and again: every
 * loaded word is compared, and afterwards nothing is held and nothing is left in /dev/shm. {@code -Pfull}
 * kills 200 times among 32 ranks; {@code -Ducm.seed} repeats a run. How engines go on without a daemon is
 * tested with the Python package, which is their client.
 */
@Timeout(value = 60, unit = TimeUnit.MINUTES)
final class RemoteKillTest {

  private static final int BLOCK = TestClient.BLOCK_TOKENS;
  private static final int SLOTS = 64;
  private static final int PROMPTS = 24;
  private static final long REST_NANOS = TimeUnit.SECONDS.toNanos(61);
  private static final int SPINS = 3_000_000;

  @TempDir private Path folder;

  private final long seed = Long.getLong("ucm.seed", System.nanoTime());
  private final Random random = new Random(seed);
  private Path socket;
  private Path config;
  private int requests;

  @BeforeEach
  void configure() throws IOException {
    socket = TestDaemon.socket(folder);
    configure("Posix");
  }

  private void configure(String pipeline) throws IOException {
    config = Files.writeString(folder.resolve("ucm.yaml"), TestDaemon.yaml(folder, pipeline));
  }

  /** Some prompts that have a beginning in common with others. */
  private int[] prompt() {
    int which = random.nextInt(PROMPTS);
    return IntStream.range(0, (2 + which % 5) * BLOCK + 1)
        .map(at -> at < BLOCK ? at : 100 * which + at)
        .toArray();
  }

  /** Segments of the daemon of this test. */
  private long segments() throws IOException {
    String names = ServerDirectory.segmentNames(socket);
    try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
      return files.filter(file -> file.getFileName().toString().startsWith(names)).count();
    }
  }

  @AfterEach
  void leavesNoSegments() throws IOException {
    assertThat(segments()).as("segments, seed %d", seed).isZero();
  }

  private TestClient scheduler(int ranks, boolean mla) throws Exception {
    TestClient scheduler = TestClient.admitted(socket, TestClient.SCHEDULER);
    scheduler.openScheduler("e", ranks, mla, Files.readString(config));
    return scheduler;
  }

  @ParameterizedTest
  @CsvSource({"Posix, false", "Posix, true", "Cache|Posix, false", "Cache|Posix, true"})
  void oneOfFourRanksIsKilled(String pipeline, boolean mla) throws Exception {
    configure(pipeline);
    killRanks(4, mla, 4);
  }

  @Tag("full")
  @Test
  void oneOfThirtyTwoRanksIsKilled() throws Exception {
    killRanks(32, true, 200);
  }

  private void killRanks(int count, boolean mla, int kills) throws Exception {
    long slots = (long) SLOTS * (mla ? 1 : count);
    List<TestProcess> ranks = new ArrayList<>();
    try (TestDaemon daemon = new TestDaemon(folder, slots * RemoteRank.BYTES);
        TestClient scheduler = scheduler(count, mla)) {
      try {
        for (int rank = 0; rank < count; rank++) {
          ranks.add(rank(count, mla, rank));
        }
        for (TestProcess rank : ranks) {
          assertThat(line(rank)).isEqualTo("@ready");
        }
        long loaded = 0;
        for (int kill = 0; kill < kills; kill++) {
          int victim = random.nextInt(count);
          Thread killer = after(random.nextInt(SPINS), ranks.get(victim)::sendKill);
          for (int served = 0; served >= 0; served = serve(scheduler, ranks)) {
            loaded += served;
          }
          killer.join();
          ranks.get(victim).close();
          while (engine().get("connected_ranks").size() == count) {
            Thread.onSpinWait();
          }
          ranks.set(victim, rank(count, mla, victim));
          assertThat(line(ranks.get(victim))).isEqualTo("@ready");
          // Nothing is under way, so that what the dead one may have copied may be used again.
          daemon.nanos.addAndGet(REST_NANOS);
        }
        for (int i = 0; i < PROMPTS; i++) {
          loaded += serve(scheduler, ranks);
        }
        assertThat(loaded).as("tokens loaded, seed %d", seed).isPositive();
        requireNothingHeld(daemon);
      } finally {
        ranks.forEach(TestProcess::close);
      }
    }
  }

  private TestProcess rank(int count, boolean mla, int rank) throws IOException {
    return new TestProcess(
        RemoteRank.class, socket.toString(), config.toString(), "" + count, "" + mla, "" + rank);
  }

  /** The next line that is no line of its log; null when it has died. */
  private static @Nullable String line(TestProcess rank) throws IOException {
    String line = rank.line();
    while (line != null && !line.startsWith("@")) {
      assertThat(line).doesNotContain("Exception");
      line = rank.line();
    }
    return line;
  }

  /** Serves a prompt; returns how many tokens were loaded, or -1 when a rank died meanwhile. */
  private int serve(TestClient scheduler, List<TestProcess> ranks) throws Exception {
    int handle = ++requests;
    int[] tokens = prompt();
    Found found = scheduler.lookup(handle, 0, tokens);
    String step = RemoteRank.line(tokens, found, plan(scheduler, handle, tokens, found));
    for (TestProcess rank : ranks) {
      try {
        rank.tell(step);
      } catch (IOException e) {
        // It has died, which its end says.
        rank.sendKill();
      }
    }
    boolean allLive = true;
    for (TestProcess rank : ranks) {
      String wrong = line(rank);
      allLive &= wrong != null;
      assertThat(wrong).as("wrong words, seed %d", seed).isIn(null, "@0");
    }
    scheduler.forget(handle);
    return allLive ? found.tokens() : -1;
  }

  private static List<Planned> plan(TestClient scheduler, int handle, int[] tokens, Found found)
      throws Exception {
    int loaded = found.tokens();
    return scheduler.plan(
        found.hold(), found.slots().size(), handle, loaded, tokens.length - loaded);
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

  private JsonNode engine() throws IOException {
    return JsonMapper.shared().readTree(Daemon.status(socket)).get("engines").get(0);
  }

  private void requireNothingHeld(TestDaemon daemon) throws IOException {
    JsonNode figures = engine();
    // What is reported last is carried out a little later.
    while (figures.get("holds").asInt()
            + figures.get("saves").asInt()
            + figures.get("open_requests").asInt()
        > 0) {
      figures = engine();
    }
    daemon.nanos.addAndGet(REST_NANOS);
    while (figures.get("resting_slots").asInt() > 0) {
      figures = engine();
    }
    assertThat(figures.get("free_slots")).as("seed %d", seed).isEqualTo(figures.get("slots"));
  }

  @ParameterizedTest
  @CsvSource({"Posix, false", "Posix, true", "Cache|Posix, false", "Cache|Posix, true"})
  void theDaemonIsKilled(String pipeline, boolean mla) throws Exception {
    configure(pipeline);
    killDaemon(mla, 2);
  }

  @Tag("full")
  @Test
  void theDaemonIsKilledManyTimes() throws Exception {
    killDaemon(false, 200);
  }

  /** The ranks have what was promised, also when the daemon is gone; the next one has what was stored. */
  private void killDaemon(boolean mla, int kills) throws Exception {
    TestProcess daemon = daemon();
    for (int kill = 0; kill < kills; kill++) {
      try (RemoteRank first = new RemoteRank(socket, Files.readString(config), 2, mla, 0);
          RemoteRank second = new RemoteRank(socket, Files.readString(config), 2, mla, 1);
          TestClient scheduler = scheduler(2, mla)) {
        assertThat(segments()).as("those of the dead are gone").isEqualTo(mla ? 1 : 2);
        while (serve(scheduler, first, second) == 0) {
          Thread.onSpinWait();
        }
        Thread killer = after(random.nextInt(SPINS), daemon::sendKill);
        try {
          while (true) {
            var _ = serve(scheduler, first, second);
          }
        } catch (IOException | IllegalStateException e) {
          killer.join();
          daemon.close();
        }
        boolean lends = Files.readString(config).contains("Cache");
        assertThat(List.of(first.isLent, second.isLent)).containsOnly(lends);
      }
      daemon = daemon();
    }
    daemon.close();
    try (TestDaemon _ = new TestDaemon(folder, SLOTS)) {
      // Removes what the last one left.
    }
  }

  /** Serves a prompt with ranks of this process, which compare what was promised also without the daemon. */
  private int serve(TestClient scheduler, RemoteRank... ranks) throws Exception {
    int handle = ++requests;
    int[] tokens = prompt();
    Found found = scheduler.lookup(handle, 0, tokens);
    List<Planned> planned = List.of();
    Exception gone = null;
    try {
      planned = plan(scheduler, handle, tokens, found);
    } catch (IOException | IllegalStateException e) {
      gone = e;
    }
    String step = RemoteRank.line(tokens, found, planned);
    for (RemoteRank rank : ranks) {
      assertThat(rank.wrong(step)).as("wrong words, seed %d", seed).isZero();
    }
    if (gone != null) {
      throw gone;
    }
    for (RemoteRank rank : ranks) {
      rank.report(step);
    }
    scheduler.forget(handle);
    return found.tokens();
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
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.RemoteRank.Step;
import ucm.testkit.TestProcess;

/**
 * An engine over the daemon that serves one request at a time, with ranks in this process or in others. It
 * recomputes what could not be loaded, and fails the test for a wrong byte.
 */
final class RemoteEngine implements AutoCloseable {

  /** Does steps somewhere. */
  private interface Rank extends AutoCloseable {
    void begin(StepPlan plan, long[] numbers) throws InterruptedException;

    /** What came of it; null when the rank has died. */
    @Nullable Step end();

    @Override
    void close();
  }

  private static final class Local implements Rank {
    private final RemoteRank rank;
    private @Nullable Step step;

    Local(RemoteRank rank) {
      this.rank = rank;
    }

    @Override
    public void begin(StepPlan plan, long[] numbers) throws InterruptedException {
      step = rank.step(plan, numbers);
    }

    @Override
    public @Nullable Step end() {
      return step;
    }

    @Override
    public void close() {
      rank.close();
    }
  }

  private static final class Remote implements Rank {
    private final TestProcess process;

    Remote(TestProcess process) {
      this.process = process;
    }

    @Override
    public void begin(StepPlan plan, long[] numbers) {
      try {
        process.tell(RemoteRank.line(plan, numbers));
      } catch (IOException e) {
        // It has died, which its end says.
        process.sendKill();
      }
    }

    @Override
    public @Nullable Step end() {
      String line = line();
      return line == null ? null : RemoteRank.step(line);
    }

    @Nullable String line() {
      try {
        String line = process.line();
        while (line != null && !line.startsWith("@")) {
          assertThat(line).doesNotContain("Exception");
          line = process.line();
        }
        return line;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public void close() {
      process.close();
    }
  }

  final RemoteScheduler scheduler;

  private final Path socket;
  private final Path config;
  private final EngineSpec spec;
  private final List<Rank> ranks = new ArrayList<>();
  private int requests;

  /** An engine without ranks. */
  RemoteEngine(Path socket, String yaml, String id, int tpSize, boolean mla) throws IOException {
    this.socket = socket;
    config = Files.writeString(Files.createTempFile(socket.getParent(), id, ".yaml"), yaml);
    spec = RemoteRank.spec(id, tpSize, mla);
    scheduler = setup().scheduler();
  }

  private RemoteSetup setup() {
    return RemoteSetup.read(socket, config, spec);
  }

  /** Ranks in this process. */
  RemoteEngine withRanks() {
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      ranks.add(new Local(new RemoteRank(setup(), rank, spec.mla())));
    }
    return this;
  }

  /** A process for each rank. */
  RemoteEngine withProcesses() throws IOException {
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      ranks.add(start(rank));
    }
    ranks.forEach(RemoteEngine::awaitReady);
    return this;
  }

  private Remote start(int rank) throws IOException {
    return new Remote(
        new TestProcess(
            RemoteRank.class,
            socket.toString(),
            config.toString(),
            spec.instance(),
            "" + spec.tpSize(),
            "" + spec.mla(),
            "" + rank));
  }

  private static void awaitReady(Rank rank) {
    assertThat(((Remote) rank).line()).isEqualTo("@ready");
  }

  /** Sends SIGKILL to the process of a rank. */
  void sendKill(int rank) {
    ((Remote) ranks.get(rank)).process.sendKill();
  }

  /** Starts the process of a rank again. */
  void replace(int rank) throws IOException {
    ranks.get(rank).close();
    ranks.set(rank, start(rank));
    awaitReady(ranks.get(rank));
  }

  /**
   * Serves a prompt.
   *
   * @return how many tokens were loaded; -1 when a rank died meanwhile
   */
  int serve(int... tokens) throws InterruptedException {
    String id = "request-" + requests++;
    int matched = scheduler.matchedTokens(PromptRequest.of(id, tokens, 1), 0);
    int blocks = Math.ceilDiv(tokens.length, RemoteRank.BLOCK_TOKENS);
    scheduler.allocated(id, IntStream.range(0, blocks).toArray(), matched);
    int loaded = serve(id, tokens, matched);
    scheduler.finished(id);
    return loaded;
  }

  /** Computes what was not matched of a request that has blocks. */
  int serve(String id, int[] tokens, int matched) throws InterruptedException {
    int computed = matched;
    while (true) {
      BitSet errors = new BitSet();
      if (!step(scheduler.plan(List.of(scheduled(id, tokens, computed))), tokens, errors)) {
        return -1;
      }
      if (errors.isEmpty()) {
        return computed;
      }
      computed = Math.min(computed, errors.nextSetBit(0) * RemoteRank.BLOCK_TOKENS);
      scheduler.loadErrorsSeen();
    }
  }

  private static ScheduledRequest scheduled(String id, int[] tokens, int computed) {
    return ScheduledRequest.of(id, computed, tokens.length - computed);
  }

  /** A step of all ranks; false when one has died. */
  boolean step(StepPlan plan, int[] tokens, BitSet errors) throws InterruptedException {
    long[] numbers = numbers(tokens);
    for (Rank rank : ranks) {
      rank.begin(plan, numbers);
    }
    boolean allLive = true;
    for (Rank rank : ranks) {
      Step step = rank.end();
      if (step == null) {
        allLive = false;
      } else {
        assertThat(step.wrong()).as("wrong words").isZero();
        for (int block : step.errors()) {
          errors.set(block);
        }
      }
    }
    return allLive;
  }

  /** What stands for the tokens up to the end of each block. */
  private static long[] numbers(int[] tokens) {
    long[] numbers = new long[Math.ceilDiv(tokens.length, RemoteRank.BLOCK_TOKENS)];
    long number = 1;
    for (int i = 0; i < tokens.length; i++) {
      number = number * 1_000_003 + tokens[i];
      numbers[i / RemoteRank.BLOCK_TOKENS] = number;
    }
    return numbers;
  }

  @Override
  public void close() {
    scheduler.close();
    ranks.forEach(Rank::close);
  }
}

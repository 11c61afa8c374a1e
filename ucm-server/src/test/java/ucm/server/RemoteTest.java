package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.StoreException;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;

/** Engines in Java over the daemon, with ranks that are threads here; every loaded word is compared. */
@Timeout(120)
final class RemoteTest {

  private static final int BLOCK = RemoteRank.BLOCK_TOKENS;
  private static final int SLOTS = 32;

  @TempDir private Path folder;

  private TestDaemon daemon;

  @BeforeEach
  void start() throws Exception {
    daemon = new TestDaemon(folder, SLOTS * RemoteRank.BYTES);
  }

  @AfterEach
  void stop() {
    daemon.close();
  }

  private RemoteEngine engine(int tpSize, boolean mla, String more) throws Exception {
    return new RemoteEngine(daemon.socket, daemon.yaml + more, "e", tpSize, mla).withRanks();
  }

  private static int[] prompt(int tokens) {
    return IntStream.range(1000, 1000 + tokens).toArray();
  }

  private int figure(String name) throws Exception {
    return daemon.status().get("engines").get(0).get(name).asInt();
  }

  /** Until what was saved is stored and what was loaded is given back. */
  private void settle() throws Exception {
    while (figure("saves") + figure("holds") > 0) {
      Thread.onSpinWait();
    }
  }

  @ParameterizedTest
  @CsvSource({"1, false, false", "2, false, false", "2, false, true", "4, true, false"})
  void whatOneRequestSavesAnotherLoads(int tpSize, boolean mla, boolean layerwise)
      throws Exception {
    try (RemoteEngine engine = engine(tpSize, mla, "use_layerwise: " + layerwise + "\n")) {
      int[] tokens = prompt(5 * BLOCK + 3);
      assertThat(engine.serve(tokens)).isZero();
      settle();
      assertThat(engine.serve(tokens)).isEqualTo(5 * BLOCK);
      assertThat(engine.serve(prompt(3 * BLOCK))).as("all but the last").isEqualTo(3 * BLOCK - 1);
      assertThat(engine.serve(prompt(8 * BLOCK))).isEqualTo(5 * BLOCK);
      settle();
      assertThat(engine.serve(prompt(8 * BLOCK + 1))).isEqualTo(8 * BLOCK);
      settle();
      assertThat(figure("free_slots")).isEqualTo(figure("slots"));
      assertThat(figure("resting_slots")).isZero();
    }
  }

  @Test
  void oneReadOfTheStorageServesThirtyTwoRanksOfMla() throws Exception {
    try (RemoteEngine engine = engine(32, true, "")) {
      int[] tokens = prompt(5 * BLOCK + 3);
      assertThat(engine.serve(tokens)).isZero();
      settle();
      long stored = daemon.metrics.count("posix_dump_bytes");
      assertThat(stored).as("one rank saves for all").isEqualTo(5 * RemoteRank.BYTES);
      assertThat(engine.serve(tokens)).isEqualTo(5 * BLOCK);
      assertThat(daemon.metrics.count("posix_load_bytes")).isEqualTo(5 * RemoteRank.BYTES);
    }
  }

  @Test
  void chunksOfAPromptAreSavedAndStepsThatOnlyDecodeSayNothing() throws Exception {
    try (RemoteEngine engine = engine(1, false, "")) {
      int[] tokens = prompt(100);
      assertThat(engine.scheduler.matchedTokens(PromptRequest.of("r", tokens, 9), 0)).isZero();
      engine.scheduler.allocated("r", IntStream.range(0, 8).toArray(), 0);
      int computed = 0;
      for (int chunk : new int[] {40, 40, 20}) {
        StepPlan plan = engine.scheduler.plan(List.of(ScheduledRequest.of("r", computed, chunk)));
        assertThat(engine.step(PlanBytes.read(PlanBytes.of(plan)), tokens, new BitSet())).isTrue();
        computed += chunk;
        assertThat(plan.saveBlocks()).isEqualTo(computed / BLOCK - (computed - chunk) / BLOCK);
      }
      assertThat(engine.scheduler.plan(List.of(ScheduledRequest.of("r", 111, 1))).requests())
          .isEmpty();
      engine.scheduler.finished("r");
      settle();
      assertThat(engine.serve(tokens)).isEqualTo(6 * BLOCK);
    }
  }

  @Test
  void generatedTokensAreSavedWhenTheConfigurationSaysSo() throws Exception {
    try (RemoteEngine engine = engine(1, false, "save_decode_blocks: true\n")) {
      int[] tokens = prompt(3 * BLOCK);
      int[] first = prompt(BLOCK + 5);
      assertThat(engine.scheduler.matchedTokens(PromptRequest.of("r", first, 50), 0)).isZero();
      engine.scheduler.allocated("r", new int[] {0, 1, 2}, 0);
      int computed = 0;
      for (int known = first.length; known < tokens.length; known++) {
        StepPlan plan =
            engine.scheduler.plan(List.of(ScheduledRequest.of("r", computed, known - computed)));
        assertThat(engine.step(plan, tokens, new BitSet())).isTrue();
        computed = known;
        engine.scheduler.generated("r", new int[] {tokens[known]});
      }
      settle();
      assertThat(engine.serve(tokens)).isEqualTo(2 * BLOCK);
    }
  }

  @Test
  void aLookUpThatWasBegunBeforeIsAnsweredWithoutAnother() throws Exception {
    try (RemoteEngine engine = engine(1, false, "")) {
      int[] tokens = prompt(4 * BLOCK + 1);
      assertThat(engine.serve(tokens)).isZero();
      settle();
      PromptRequest request = PromptRequest.of("r", tokens, 1);
      while (!engine.scheduler.lookUp(request, 0)) {
        Thread.onSpinWait();
      }
      assertThat(engine.scheduler.matchedTokens(request, 0)).isEqualTo(4 * BLOCK);
      assertThat(engine.scheduler.matchedTokens(request, 0)).isEqualTo(4 * BLOCK);
      assertThat(figure("holds")).isEqualTo(1);
      engine.scheduler.allocated("r", new int[] {0, 1, 2, 3, 4}, 0);
      assertThat(engine.serve("r", tokens, 0)).as("the engine computes it rather").isZero();
      engine.scheduler.finished("r");
      assertThat(engine.scheduler.plan(List.of()).requests()).isEmpty();
      settle();
    }
  }

  /** The ranks have what was promised, also when the daemon is gone; nothing is found until it is back. */
  @Test
  void theDaemonGoesAndComesBack() throws Exception {
    try (RemoteEngine engine = engine(2, false, "")) {
      int[] tokens = prompt(4 * BLOCK + 1);
      assertThat(engine.serve(tokens)).isZero();
      settle();
      PromptRequest request = PromptRequest.of("r", tokens, 1);
      assertThat(engine.scheduler.matchedTokens(request, 0)).isEqualTo(4 * BLOCK);
      engine.scheduler.allocated("r", new int[] {0, 1, 2, 3, 4}, 4 * BLOCK);
      stop();
      assertThat(engine.serve("r", tokens, 4 * BLOCK)).isEqualTo(4 * BLOCK);
      engine.scheduler.finished("r");
      assertThat(engine.serve(tokens)).as("without a daemon").isZero();
      start();
      while (engine.serve(tokens) == 0) {
        Thread.onSpinWait();
      }
      assertThat(engine.serve(tokens)).isEqualTo(4 * BLOCK);
    }
  }

  /** What was computed from a block that a rank could not load is not stored. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRankThatHasNotWhatWasPromisedSaysSo(boolean layerwise) throws Exception {
    try (RemoteEngine engine = engine(1, false, "use_layerwise: " + layerwise + "\n")) {
      assertThat(engine.serve(prompt(2 * BLOCK + 1))).isZero();
      settle();
      int[] tokens = prompt(4 * BLOCK + 1);
      PromptRequest request = PromptRequest.of("r", tokens, 1);
      assertThat(engine.scheduler.matchedTokens(request, 0)).isEqualTo(2 * BLOCK);
      engine.scheduler.allocated("r", new int[] {0, 1, 2, 3, 4}, 2 * BLOCK);
      StepPlan plan = engine.scheduler.plan(List.of(ScheduledRequest.of("r", 2 * BLOCK, 40)));
      // Slots of another time.
      byte[] bytes = PlanBytes.of(plan);
      int firstId = 4 + 4 + 1 + 4;
      bytes[firstId] ^= 1;
      BitSet errors = new BitSet();
      assertThat(engine.step(PlanBytes.read(bytes), tokens, errors)).isTrue();
      assertThat(errors.get(0)).isTrue();
      engine.scheduler.finished("r");
      // The save of what was computed has ended, too.
      settle();
      assertThat(engine.serve(tokens)).isEqualTo(2 * BLOCK);
    }
  }

  @Test
  void refusalsSayWhy() throws Exception {
    RemoteSetup nowhere =
        RemoteSetup.of(
            daemon.socket,
            "ucm.yaml",
            TestDaemon.yaml(folder, "Nothing"),
            RemoteRank.spec("e", 1, false));
    assertThatThrownBy(() -> nowhere.slots(0))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("the daemon at " + daemon.socket + " refuses: ")
        .hasMessageContaining("Nothing");
    assertThatThrownBy(
            () ->
                RemoteSetup.of(
                    daemon.socket, "ucm.yaml", "a: [1\n", RemoteRank.spec("e", 1, false)))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("ucm.yaml");
  }
}

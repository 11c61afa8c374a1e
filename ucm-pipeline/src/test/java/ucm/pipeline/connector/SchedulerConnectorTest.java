package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static ucm.pipeline.connector.TestEngines.BLOCK_TOKENS;
import static ucm.pipeline.connector.TestEngines.blocks;
import static ucm.pipeline.connector.TestEngines.gqa;
import static ucm.pipeline.connector.TestEngines.setup;
import static ucm.pipeline.connector.TestEngines.tokens;

import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.fault.MemoryStore;

class SchedulerConnectorTest {

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  private static BlockIds ids(int[] tokens) {
    return BlockHasher.of("model", 1, "torch.bfloat16").hash(tokens, BLOCK_TOKENS);
  }

  /** Stores blocks as an engine of this kind would have. */
  private void store(EngineSpec spec, BlockIds ids) throws InterruptedException {
    RankMemory memory = new RankMemory(spec.kv(), ids.size());
    int[] numbers = IntStream.range(0, ids.size()).toArray();
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      try (MemoryStore store = TestEngines.open(new MemoryStore(volume), spec);
          WorkerConnector worker =
              setup(spec, "use_layerwise", false).worker(rank, memory.caches(), store)) {
        StepPlan plan =
            new StepPlan(
                List.of(new RequestPlan("r", BlockIds.empty(), blocks(), ids, numbers, blocks())));
        TestEngines.step(worker, plan, TestEngines.LayerComputation.NONE);
      }
    }
  }

  private SchedulerConnector scheduler(EngineSpec spec, Object... top) {
    return setup(spec, top).scheduler(TestEngines.open(new MemoryStore(volume), spec));
  }

  @Test
  void plansLoadsAndTheBlocksThatBecomeFullOfAChunkedPrompt() throws InterruptedException {
    int[] prompt = tokens(100, 22);
    BlockIds ids = ids(prompt);
    store(gqa(1), ids.slice(0, 2));
    try (SchedulerConnector scheduler = scheduler(gqa(1))) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 8), 0)).isEqualTo(8);
      scheduler.allocated("a", blocks(7, 3, 9, 1), 8);
      RequestPlan first =
          scheduler.plan(List.of(ScheduledRequest.of("a", 8, 6))).requests().getFirst();
      assertThat(first.loadIds()).isEqualTo(ids.slice(0, 2));
      assertThat(first.loadBlocks()).containsExactly(7, 3);
      assertThat(first.saveIds()).as("tokens 8..13 fill one block").isEqualTo(ids.slice(2, 3));
      assertThat(first.saveBlocks()).containsExactly(9);
      assertThat(first.contextBlocks()).containsExactly(7, 3);
      RequestPlan second =
          scheduler
              .plan(List.of(new ScheduledRequest("a", 14, 8, blocks(5, 6), false)))
              .requests()
              .getFirst();
      assertThat(second.loadBlocks()).as("a request loads once").isEmpty();
      assertThat(second.saveIds()).isEqualTo(ids.slice(3, 5));
      assertThat(second.saveBlocks()).containsExactly(1, 5);
      assertThat(second.contextBlocks()).containsExactly(7, 3, 9);
      assertThat(scheduler.plan(List.of(ScheduledRequest.of("a", 22, 1))))
          .as("generated tokens are not saved")
          .isEqualTo(StepPlan.EMPTY);
      scheduler.finished("a");
      assertThat(scheduler.openRequests()).isZero();
      assertThat(scheduler.plan(List.of(ScheduledRequest.of("a", 22, 1))))
          .isEqualTo(StepPlan.EMPTY);
    }
  }

  @Test
  void leavesTheLastTokenOfAFullHitToCompute() throws InterruptedException {
    int[] prompt = tokens(0, 12);
    store(gqa(1), ids(prompt));
    try (SchedulerConnector scheduler = scheduler(gqa(1))) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 4)).isEqualTo(7);
      scheduler.allocated("a", blocks(0, 1, 2), 7);
      RequestPlan plan =
          scheduler.plan(List.of(ScheduledRequest.of("a", 11, 1))).requests().getFirst();
      assertThat(plan.loadBlocks()).as("the last block is loaded as well").containsExactly(1, 2);
      assertThat(plan.saveBlocks()).as("and not stored again").isEmpty();
      assertThat(scheduler.matchedTokens(PromptRequest.of("b", prompt, 1), 12)).isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void savesBlocksOfGeneratedTokensWhenAskedTo(boolean saved) {
    BlockIds ids = ids(tokens(0, 14));
    try (SchedulerConnector scheduler = scheduler(gqa(1), "save_decode_blocks", saved)) {
      scheduler.matchedTokens(PromptRequest.of("a", tokens(0, 6), 9), 0);
      scheduler.allocated("a", blocks(5, 6), 0);
      scheduler.plan(List.of(ScheduledRequest.of("a", 0, 6)));
      // Tokens 6 and 7, then 8 to 13: blocks 1 and 2 are full, two tokens are left over.
      scheduler.generated("a", tokens(6, 2));
      scheduler.generated("a", tokens(8, 6));
      List<RequestPlan> plans =
          scheduler.plan(List.of(new ScheduledRequest("a", 4, 10, blocks(7, 8), false))).requests();
      if (saved) {
        assertThat(plans.getFirst().saveIds()).isEqualTo(ids.slice(1, 3));
        assertThat(plans.getFirst().saveBlocks()).containsExactly(6, 7);
      } else {
        assertThat(plans).isEmpty();
      }
    }
  }

  @Test
  void loadsEverythingAgainAfterAPreemption() throws InterruptedException {
    int[] prompt = tokens(0, 12);
    BlockIds ids = ids(prompt);
    store(gqa(1), ids.slice(0, 1));
    try (SchedulerConnector scheduler = scheduler(gqa(1))) {
      scheduler.matchedTokens(PromptRequest.of("a", prompt, 9), 0);
      scheduler.allocated("a", blocks(0, 1, 2), 4);
      scheduler.plan(List.of(ScheduledRequest.of("a", 4, 8)));
      store(gqa(1), ids.slice(1, 3));
      int[] longer = tokens(0, 17);
      assertThat(
              scheduler.matchedTokens(new PromptRequest("a", longer, 12, 9, PromptVariant.NONE), 0))
          .isEqualTo(12);
      scheduler.allocated("a", blocks(8, 7, 6, 5, 4), 12);
      RequestPlan plan =
          scheduler
              .plan(List.of(new ScheduledRequest("a", 12, 5, blocks(8, 7, 6, 5, 4), true)))
              .requests()
              .getFirst();
      assertThat(plan.loadIds()).isEqualTo(ids);
      assertThat(plan.loadBlocks()).containsExactly(8, 7, 6);
      assertThat(plan.saveIds())
          .as("a block with generated tokens")
          .isEqualTo(ids(longer).slice(3, 4));
      assertThat(plan.saveBlocks()).containsExactly(5);
    }
  }

  @Test
  void savesAgainWhatIsComputedAgainAfterALoadError() throws InterruptedException {
    int[] prompt = tokens(0, 16);
    store(gqa(1), ids(prompt).slice(0, 3));
    try (SchedulerConnector scheduler = scheduler(gqa(1))) {
      scheduler.matchedTokens(PromptRequest.of("a", prompt, 9), 0);
      scheduler.allocated("a", blocks(0, 1, 2, 3), 12);
      scheduler.plan(List.of(ScheduledRequest.of("a", 12, 4)));
      RequestPlan plan =
          scheduler.plan(List.of(ScheduledRequest.of("a", 4, 12))).requests().getFirst();
      assertThat(plan.loadBlocks()).isEmpty();
      assertThat(plan.saveBlocks()).containsExactly(1, 2, 3);
      assertThat(plan.contextBlocks()).containsExactly(0);
    }
  }

  @Test
  void loadsOnlyWhatTheEngineTakes() throws InterruptedException {
    int[] prompt = tokens(0, 16);
    store(gqa(1), ids(prompt).slice(0, 3));
    try (SchedulerConnector scheduler = scheduler(gqa(1))) {
      scheduler.matchedTokens(PromptRequest.of("a", prompt, 9), 0);
      scheduler.allocated("a", blocks(0, 1, 2, 3), 4);
      RequestPlan plan =
          scheduler.plan(List.of(ScheduledRequest.of("a", 4, 12))).requests().getFirst();
      assertThat(plan.loadBlocks()).containsExactly(0);
      assertThat(plan.saveBlocks()).containsExactly(1, 2, 3);
      scheduler.matchedTokens(PromptRequest.of("b", prompt, 9), 0);
      scheduler.allocated("b", blocks(4, 5, 6, 7), 0);
      assertThat(scheduler.plan(List.of(ScheduledRequest.of("b", 0, 16))).loadBlocks()).isZero();
      scheduler.matchedTokens(PromptRequest.of("c", prompt, 9), 0);
      StepPlan unanswered =
          scheduler.plan(List.of(new ScheduledRequest("c", 0, 16, blocks(4, 5, 6, 7), false)));
      assertThat(unanswered.loadBlocks()).isZero();
      assertThat(unanswered.saveBlocks()).isEqualTo(4);
    }
  }

  @Test
  void aBlockIsAHitOnlyWhenEveryRanksPartIsThere() throws InterruptedException {
    EngineSpec spec = gqa(3);
    BlockHasher hasher = BlockHasher.of("model", 3, "torch.bfloat16");
    int[] prompt = tokens(0, 17);
    BlockIds ids = hasher.hash(prompt, BLOCK_TOKENS);
    store(spec, ids);
    try (SchedulerConnector scheduler = scheduler(spec)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(16);
      volume.remove(hasher.ofRank(2, ids), 3);
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(12);
      volume.remove(hasher.ofRank(1, ids), 1);
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(4);
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 8)).isEqualTo(4);
    }
  }

  @Test
  void hitRatioCapsAllHitsOnBlockBoundaries() throws InterruptedException {
    int[] prompt = tokens(0, 40);
    store(gqa(1), ids(prompt));
    try (SchedulerConnector scheduler = scheduler(gqa(1), "hit_ratio", 0.55)) {
      PromptRequest request = PromptRequest.of("a", prompt, 1);
      assertThat(scheduler.matchedTokens(request, 0)).as("22 tokens are 5 blocks").isEqualTo(20);
      assertThat(scheduler.matchedTokens(request, 8)).as("hits on the device count").isEqualTo(12);
      assertThat(scheduler.matchedTokens(request, 28)).as("more than that already").isZero();
    }
    try (SchedulerConnector scheduler = scheduler(gqa(1), "hit_ratio", 1)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(39);
    }
    try (SchedulerConnector scheduler = scheduler(gqa(1), "hit_ratio", 0.7)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0))
          .as("0.7 x 40 is 28, whatever doubles say")
          .isEqualTo(28);
    }
  }

  @Test
  void thresholdsLeaveRequestsAlone() throws InterruptedException {
    int[] prompt = tokens(0, 16);
    store(gqa(1), ids(prompt).slice(0, 2));
    try (SchedulerConnector scheduler = scheduler(gqa(1), "persist_token_threshold", 17)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isZero();
      scheduler.allocated("a", blocks(0, 1, 2, 3), 0);
      assertThat(scheduler.plan(List.of(ScheduledRequest.of("a", 0, 16))))
          .as("nothing is saved either")
          .isEqualTo(StepPlan.EMPTY);
      int[] longer = tokens(0, 17);
      assertThat(scheduler.matchedTokens(PromptRequest.of("b", longer, 1), 0)).isEqualTo(8);
    }
    try (SchedulerConnector scheduler = scheduler(gqa(1), "load_tokens_threshold", 8)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isZero();
      scheduler.allocated("a", blocks(0, 1, 2, 3), 0);
      assertThat(scheduler.plan(List.of(ScheduledRequest.of("a", 0, 16))).saveBlocks())
          .isEqualTo(4);
    }
    try (SchedulerConnector scheduler = scheduler(gqa(1), "load_tokens_threshold", 7)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(8);
    }
  }

  @Test
  void liteModeCountsHitsAndTellsTheEngineOfNone(@TempDir Path folder) throws InterruptedException {
    RecordingMetrics metrics = new RecordingMetrics();
    ConnectorSetup setup =
        TestEngines.setup(gqa(2), TestEngines.top("use_lite", true, "hit_ratio", 0.5), metrics)
            .withTraces(new TraceOptions(folder, 1, 1));
    int[] prompt = tokens(0, 17);
    try (SchedulerConnector scheduler = setup.scheduler();
        WorkerConnector worker =
            setup.worker(1, 0, new RankMemory(TestEngines.gqaLayout(), 4).caches())) {
      for (String id : List.of("a", "b")) {
        assertThat(scheduler.matchedTokens(PromptRequest.of(id, prompt, 1), 4)).isZero();
        scheduler.allocated(id, blocks(0, 1, 2, 3, 4), 0);
        StepPlan plan = scheduler.plan(List.of(ScheduledRequest.of(id, 4, 13)));
        assertThat(plan).isEqualTo(StepPlan.EMPTY);
        TestEngines.step(worker, plan, TestEngines.LayerComputation.NONE);
      }
      assertThat(scheduler.statistics()).isEqualTo(new HitStatistics(2, 8, 2, 3));
    }
  }

  @Test
  void aStoreThatKeepsNoBytesGivesNoHits() throws InterruptedException {
    EngineSpec spec = gqa(1);
    ConnectorSetup setup = setup(spec);
    int[] prompt = tokens(0, 9);
    try (var pipeline = setup.openPipeline(0);
        WorkerConnector worker = setup.worker(0, new RankMemory(spec.kv(), 4).caches(), pipeline);
        SchedulerConnector scheduler = setup.scheduler(pipeline)) {
      scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0);
      scheduler.allocated("a", blocks(0, 1, 2), 0);
      TestEngines.step(
          worker,
          scheduler.plan(List.of(ScheduledRequest.of("a", 0, 9))),
          TestEngines.LayerComputation.NONE);
      assertThat(scheduler.matchedTokens(PromptRequest.of("b", prompt, 1), 0)).isZero();
      assertThat(scheduler.statistics().externalBlocks()).isEqualTo(2);
    }
  }

  @Test
  void aClosedStoreHasNothingAndDisturbsNoCaller() throws InterruptedException {
    int[] prompt = tokens(0, 9);
    store(gqa(1), ids(prompt));
    RecordingMetrics metrics = new RecordingMetrics();
    MemoryStore store = TestEngines.open(new MemoryStore(volume), gqa(1));
    try (SchedulerConnector scheduler =
        TestEngines.setup(gqa(1), TestEngines.top(), metrics).scheduler(store)) {
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isEqualTo(8);
      store.close();
      assertThat(scheduler.matchedTokens(PromptRequest.of("a", prompt, 1), 0)).isZero();
      assertThat(scheduler.matchedTokens(PromptRequest.of("b", prompt, 1), 0)).isZero();
      assertThat(metrics.count("connector_faults")).isEqualTo(2);
    }
  }

  @Test
  void saysWhatIsWrongWithTheOrderOfCalls() throws InterruptedException {
    int[] prompt = tokens(0, 16);
    store(gqa(1), ids(prompt).slice(0, 2));
    SchedulerConnector scheduler = scheduler(gqa(1));
    PromptRequest request = PromptRequest.of("a", prompt, 1);
    assertThatIllegalStateException()
        .isThrownBy(() -> scheduler.allocated("a", blocks(1), 0))
        .withMessageContaining("ask matchedTokens() before");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> scheduler.matchedTokens(request, 5))
        .withMessageContaining("whole blocks of 4");
    assertThat(scheduler.matchedTokens(request, 0)).isEqualTo(8);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> scheduler.allocated("a", blocks(1, 2, 3, 4), 9))
        .withMessageContaining("8 external tokens were offered; the engine takes 9");
    assertThatIllegalStateException()
        .isThrownBy(() -> scheduler.plan(List.of(ScheduledRequest.of("a", 8, 8))))
        .withMessageContaining("tell allocated() first");
    assertThatIllegalStateException()
        .isThrownBy(() -> scheduler.allocated("a", blocks(1), 8))
        .withMessageContaining("needs 2 blocks and the request's table has 1");
    scheduler.close();
    assertThatIllegalStateException()
        .isThrownBy(() -> scheduler.matchedTokens(request, 0))
        .withMessageContaining("closed");
  }
}

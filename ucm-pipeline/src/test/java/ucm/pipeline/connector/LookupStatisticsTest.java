package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.pipeline.connector.TestEngines.BLOCK_TOKENS;
import static ucm.pipeline.connector.TestEngines.blocks;
import static ucm.pipeline.connector.TestEngines.gqa;
import static ucm.pipeline.connector.TestEngines.setup;
import static ucm.pipeline.connector.TestEngines.tokens;
import static ucm.pipeline.connector.TestEngines.top;

import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

class LookupStatisticsTest {

  private static final int[] PROMPT = tokens(0, 22);
  private static final BlockIds IDS =
      BlockHasher.of("model", 1, "torch.bfloat16").hash(PROMPT, BLOCK_TOKENS);

  private final MemoryStore.Volume volume = new MemoryStore.Volume();
  private final RecordingMetrics metrics = new RecordingMetrics();
  private final RankMemory memory = new RankMemory(TestEngines.gqaLayout(), 8);

  private Store store() {
    return TestEngines.open(new MemoryStore(volume), gqa(1));
  }

  private ConnectorSetup counting(Object... top) {
    return setup(gqa(1), top(top), metrics);
  }

  /** One request, computed to its end; returns the tokens that were offered. */
  private int serve(
      SchedulerConnector scheduler, WorkerConnector worker, String id, int computedTokens)
      throws InterruptedException {
    int matched = scheduler.matchedTokens(PromptRequest.of(id, PROMPT, 1), computedTokens);
    scheduler.allocated(id, blocks(0, 1, 2, 3, 4, 5), matched);
    int start = computedTokens + matched;
    StepPlan plan = scheduler.plan(List.of(ScheduledRequest.of(id, start, PROMPT.length - start)));
    TestEngines.step(worker, plan, TestEngines.LayerComputation.NONE);
    scheduler.finished(id);
    return matched;
  }

  private long count(String name) {
    return metrics.count(name);
  }

  /** Every token that was asked for has gone one way. */
  @AfterEach
  void addsUp() {
    assertThat(count("total_prefix_query_tokens"))
        .isPositive()
        .isEqualTo(
            count("gpu_hbm_hit_tokens")
                + count("ucm_hit_tokens")
                + count("funnel_miss_too_short_tokens")
                + count("funnel_miss_never_stored_tokens")
                + count("funnel_miss_evicted_tokens")
                + count("funnel_miss_store_down_tokens"));
  }

  @Test
  void countsLoadsSavesAndEachReasonOfAMiss() throws InterruptedException {
    try (Store store = store();
        WorkerConnector worker = counting().worker(0, memory.caches(), store);
        SchedulerConnector scheduler = counting().scheduler(store)) {
      assertThat(serve(scheduler, worker, "cold", 0)).isZero();
      assertThat(count("funnel_miss_never_stored_tokens")).isEqualTo(20);
      assertThat(count("funnel_miss_too_short_tokens")).as("they fill no block").isEqualTo(2);
      assertThat(count("save_bytes")).isEqualTo(5L * TestEngines.LAYERS * 192);
      assertThat(metrics.sum("save_blocks_num")).isEqualTo(5);
      assertThat(metrics.recorded("load_duration")).as("nothing was loaded").isZero();

      volume.remove(IDS, 3);
      assertThat(serve(scheduler, worker, "warm", 4)).isEqualTo(8);
      assertThat(count("gpu_hbm_hit_tokens")).isEqualTo(4);
      assertThat(count("ucm_hit_tokens")).isEqualTo(8);
      assertThat(count("funnel_miss_evicted_tokens"))
          .as("the block that is gone, and the next one")
          .isEqualTo(8);
      assertThat(count("funnel_loaded_tokens")).isEqualTo(8);
      assertThat(count("funnel_used_tokens")).isEqualTo(8);
      assertThat(count("load_bytes")).isEqualTo(2L * TestEngines.LAYERS * 192);
      assertThat(metrics.sum("load_blocks_num")).isEqualTo(2);
      assertThat(metrics.sum("load_requests_num")).isEqualTo(1);
      assertThat(metrics.recorded("load_speed")).isEqualTo(1);
      assertThat(metrics.recorded("layerwise_wait_blocking_ms")).isEqualTo(TestEngines.LAYERS);
      assertThat(metrics.sum("interval_lookup_hit_rates")).isEqualTo(0.4);
    }
  }

  @Test
  void aRequestThatIsAskedForAgainCountsOnce() {
    try (Store store = store();
        SchedulerConnector scheduler = counting().scheduler(store)) {
      scheduler.matchedTokens(PromptRequest.of("a", PROMPT, 1), 0);
      scheduler.matchedTokens(PromptRequest.of("a", PROMPT, 1), 0);
      assertThat(count("total_prefix_query_tokens")).isEqualTo(22);
    }
  }

  @Test
  void promptsBelowTheThresholdAreTooShort() {
    try (Store store = store();
        SchedulerConnector scheduler = counting("persist_token_threshold", 23).scheduler(store)) {
      scheduler.matchedTokens(PromptRequest.of("a", PROMPT, 1), 0);
      assertThat(count("funnel_miss_too_short_tokens")).isEqualTo(22);
    }
  }

  @Test
  void whatAPolicyLeavesAloneIsDeclined() throws InterruptedException {
    try (Store store = store();
        WorkerConnector worker = counting().worker(0, memory.caches(), store);
        SchedulerConnector all = counting().scheduler(store);
        SchedulerConnector some = counting("hit_ratio", 0.5).scheduler(store)) {
      serve(all, worker, "cold", 0);
      assertThat(serve(some, worker, "capped", 0)).isEqualTo(8);
      assertThat(count("ucm_hit_tokens")).isEqualTo(20);
      assertThat(count("funnel_declined_tokens")).isEqualTo(12);
      assertThat(count("funnel_loaded_tokens")).isEqualTo(8);
    }
  }

  @Test
  void aLookupThatFailsIsAStoreThatIsDown() {
    Store store = store();
    try (SchedulerConnector scheduler = counting().scheduler(store)) {
      store.close();
      scheduler.matchedTokens(PromptRequest.of("a", PROMPT, 1), 0);
      assertThat(count("funnel_miss_store_down_tokens")).isEqualTo(20);
    }
  }

  @Test
  void loadsThatFailSayWhy() throws InterruptedException {
    try (Store store = store();
        WorkerConnector worker = counting().worker(0, memory.caches(), store);
        SchedulerConnector scheduler = counting().scheduler(store)) {
      serve(scheduler, worker, "cold", 0);
      PromptRequest again = PromptRequest.of("warm", PROMPT, 1);
      scheduler.allocated("warm", blocks(0, 1, 2, 3, 4, 5), scheduler.matchedTokens(again, 0));
      volume.remove(IDS, 1);
      TestEngines.step(
          worker,
          scheduler.plan(List.of(ScheduledRequest.of("warm", 20, 2))),
          TestEngines.LayerComputation.NONE);
      assertThat(count("funnel_load_evicted_tokens")).isEqualTo(4);
      assertThat(count("funnel_loaded_tokens")).isEqualTo(16);
      assertThat(count("funnel_used_tokens")).as("up to the gap").isEqualTo(4);
    }
    assertThat(loadWith(Fault.FAIL, "funnel_load_store_down_tokens")).isEqualTo(4);
    assertThat(loadWith(Fault.CORRUPT, "funnel_load_corrupt_tokens")).isEqualTo(4);
  }

  /** Loads one block with a fault. */
  private long loadWith(Fault fault, String counter) throws InterruptedException {
    FaultyStore faulty = new FaultyStore(new MemoryStore(volume), 1).at(1, Call.LOAD, fault);
    RequestPlan load =
        new RequestPlan("l", IDS.slice(0, 1), blocks(0), BlockIds.empty(), blocks(), blocks());
    try (Store store = TestEngines.open(faulty, gqa(1));
        WorkerConnector worker =
            counting("use_layerwise", false).worker(0, memory.caches(), store)) {
      worker.startLoad(new StepPlan(List.of(load)));
      worker.abandonStep();
    }
    return count(counter);
  }

  private static PromptLookup looksUpThree(LookupStatistics statistics) {
    PromptLookup lookup =
        new PromptLookup(
            new RequestState("r"),
            PromptRequest.of("r", PROMPT, 1),
            IDS,
            true,
            statistics.before(),
            null,
            Integer.MAX_VALUE);
    lookup.found(3);
    return lookup;
  }

  @Test
  void tellsTheStagesOfAPipelineApart() {
    StageLookups lookups = new StageLookups(metrics, List.of("Cache", "Posix"));
    LookupStatistics statistics = new LookupStatistics(metrics, gqa(1), lookups, null);
    lookups.counter("cache_lookup_hit_blocks", "").add(5);
    PromptLookup first = looksUpThree(statistics);
    lookups.counter("cache_lookup_hit_blocks", "").add(2);
    lookups.counter("posix_lookup_hit_blocks", "").add(9);
    assertThat(statistics.count(first)).isTrue();
    assertThat(count("funnel_found_cache_tokens")).isEqualTo(8);
    assertThat(count("funnel_found_posix_tokens")).as("others looked up as well").isEqualTo(4);
    assertThat(count("funnel_miss_never_stored_tokens")).isEqualTo(8);
    PromptLookup second = looksUpThree(statistics);
    lookups.counter("posix_health_lookup_misses", "").increment();
    assertThat(statistics.count(second)).isTrue();
    assertThat(count("funnel_miss_store_down_tokens")).isEqualTo(8);
    assertThat(count("posix_lookup_hit_blocks")).as("passed on").isEqualTo(9);
  }
}

package ucm.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreMetrics;
import ucm.api.config.StoreConfig;
import ucm.cli.replay.RequestFunnel.MissReason;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.statistics.StageLookups;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

class ExplainedReplayTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(4096, 4096, 4096);
  private static final int BLOCK_TOKENS = 16;

  private final MemoryStore.Volume volume = new MemoryStore.Volume();
  private final StageLookups lookups = new StageLookups(StoreMetrics.NONE, List.of("Memory"));
  private RequestFunnel funnel = new RequestFunnel();

  /** Opens a store of blocks as large as those of the tests. */
  static Store open(Store store) {
    store.configure(
        StoreConfig.of(
            Map.of(
                "device_id", 0L,
                "tensor_size", 4096L,
                "shard_size", 4096L,
                "block_size", 4096L)));
    store.open(StoreContext.of(null));
    return store;
  }

  private ExplainedReplay replay(Store store, int shortest, int hbmBlocks) {
    return replay(store, Map.of("persist_token_threshold", (long) shortest), hbmBlocks);
  }

  private ExplainedReplay replay(Store store, Map<String, ?> top, int hbmBlocks) {
    return replay(store, top, hbmBlocks, false);
  }

  private ExplainedReplay replay(Store store, Map<String, ?> top, int hbmBlocks, boolean removes) {
    return new ExplainedReplay(
        store,
        lookups,
        LAYOUT,
        Duration.ofMinutes(1),
        UcmConfig.of("Fake", Map.of()).withTopLevel(top, "test").settings(),
        hbmBlocks,
        100,
        removes);
  }

  private static TraceRequest request(int tokens, long... blocks) {
    long[] words = new long[2 * blocks.length];
    for (int i = 0; i < blocks.length; i++) {
      words[2 * i] = 7;
      words[2 * i + 1] = blocks[i];
    }
    return new TraceRequest(0, "", tokens, 1, BLOCK_TOKENS, BlockIds.wrap(words));
  }

  private static BlockIds ids(long... blocks) {
    return StoreReplay.storeIds(request(BLOCK_TOKENS * blocks.length, blocks), 0);
  }

  private RequestFunnel serve(ExplainedReplay replay, TraceRequest request) {
    replay.request(request);
    funnel = replay.funnel();
    return funnel;
  }

  /** Every token has gone one way. */
  @AfterEach
  void addsUp() {
    long missed = 0;
    for (MissReason reason : MissReason.values()) {
      missed += funnel.missed(reason);
    }
    assertThat(funnel.asked).isPositive().isEqualTo(funnel.hbm + funnel.loaded + missed);
  }

  @Test
  void meetsNoBlockOfOthersInAStoreItSharesAndRemovesItsOwn() {
    try (ExplainedReplay others = replay(open(new MemoryStore(volume)), 0, 0)) {
      serve(others, request(48, 1, 2, 3));
    }
    assertThat(volume.size()).isEqualTo(3);
    try (ExplainedReplay replay = replay(open(new MemoryStore(volume)), Map.of(), 0, true)) {
      serve(replay, request(32, 1, 2));
      assertThat(funnel.found()).as("tokens of others").isZero();
      serve(replay, request(48, 1, 2, 3));
      assertThat(funnel.found()).as("tokens of its own").isEqualTo(32);
      assertThat(volume.size()).isEqualTo(6);
    }
    assertThat(volume.size()).as("blocks of others, left alone").isEqualTo(3);
  }

  @Test
  void tellsWhatIsFoundFromWhatWasNeverStoredAndWhatFillsNoBlock() {
    try (Store store = open(new MemoryStore(volume));
        ExplainedReplay replay = replay(store, 0, 0)) {
      serve(replay, request(40, 1, 2, 3));
      assertThat(funnel.missed(MissReason.NEVER_STORED)).isEqualTo(32);
      assertThat(funnel.missed(MissReason.TOO_SHORT))
          .as("the third block is not full")
          .isEqualTo(8);
      serve(replay, request(64, 1, 2, 3, 4));
      assertThat(funnel.found()).isEqualTo(32);
      assertThat(funnel.data().get("found_tokens_by_tier")).isEqualTo(Map.of("memory", 32L));
      assertThat(funnel.loaded).isEqualTo(32);
      assertThat(funnel.used).isEqualTo(32);
      assertThat(funnel.missed(MissReason.NEVER_STORED)).isEqualTo(32);
    }
  }

  @Test
  void whatWasStoredAndIsGoneIsEvictedAndSoIsWhatLiesBehindIt() {
    try (Store store = open(new MemoryStore(volume));
        ExplainedReplay replay = replay(store, 0, 0)) {
      serve(replay, request(64, 1, 2, 3, 4));
      volume.remove(ids(1, 2, 3, 4), 1);
      serve(replay, request(80, 1, 2, 3, 4, 5));
      assertThat(funnel.found()).isEqualTo(16);
      assertThat(funnel.missed(MissReason.EVICTED)).isEqualTo(48);
      assertThat(funnel.missed(MissReason.NEVER_STORED)).isEqualTo(16);
    }
  }

  @Test
  void damageIsCorruptWhenItIsFoundAndAfterwards() {
    FaultyStore faulty =
        new FaultyStore(new MemoryStore(volume), 1).at(1, Call.LOAD, Fault.CORRUPT);
    try (Store store = open(faulty);
        ExplainedReplay replay = replay(store, 0, 0)) {
      serve(replay, request(32, 1, 2));
      serve(replay, request(32, 1, 2));
      assertThat(funnel.found()).isEqualTo(32);
      assertThat(funnel.used).isZero();
      assertThat(funnel.missed(MissReason.CORRUPT)).isEqualTo(32);
      assertThat(funnel.loaded).isZero();
    }
  }

  @Test
  void aStoreThatDoesNotAnswerIsDown() {
    Store store = open(new MemoryStore(volume));
    try (ExplainedReplay replay = replay(store, 0, 0)) {
      serve(replay, request(32, 1, 2));
      store.close();
      serve(replay, request(32, 1, 2));
      assertThat(funnel.missed(MissReason.STORE_DOWN)).isEqualTo(32);
    }
    FaultyStore refusing = new FaultyStore(new MemoryStore(volume), 1).at(1, Call.LOAD, Fault.FAIL);
    try (Store again = open(refusing);
        ExplainedReplay replay = replay(again, 0, 0)) {
      serve(replay, request(32, 1, 2));
      assertThat(funnel.missed(MissReason.STORE_DOWN)).isEqualTo(32);
    }
  }

  @Test
  void shortRequestsAreLeftAloneAndTheDeviceIsAskedFirst() {
    try (Store store = open(new MemoryStore(volume));
        ExplainedReplay replay = replay(store, 33, 3)) {
      serve(replay, request(32, 1, 2));
      assertThat(funnel.missed(MissReason.TOO_SHORT)).isEqualTo(32);
      serve(replay, request(48, 1, 2, 3));
      serve(replay, request(64, 1, 2, 3, 4));
      assertThat(funnel.hbm).isEqualTo(48);
      assertThat(funnel.missed(MissReason.NEVER_STORED)).isEqualTo(16);
      serve(replay, request(64, 1, 2, 3, 4));
      assertThat(funnel.hbm).as("room for three").isEqualTo(48);
      assertThat(funnel.loaded).isEqualTo(16);
    }
  }
}

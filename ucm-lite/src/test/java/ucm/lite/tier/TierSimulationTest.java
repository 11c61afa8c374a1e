package ucm.lite.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.CacheHits;
import ucm.lite.curve.Quantiles;
import ucm.lite.curve.TraceAnalysis;
import ucm.lite.curve.TraceSummary;
import ucm.lite.insight.TraceInsights;
import ucm.lite.insight.TraceInsights.TimeBin;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceRequest;

class TierSimulationTest {
  private static final int ALL = 1 << 20;

  @Test
  void conservesBlocksAndTokensInRandomClusters() throws InterruptedException {
    Random random = new Random(5);
    for (int seed = 0; seed < 1000; seed++) {
      List<TraceRequest> trace =
          seed % 2 == 0 ? RandomTraces.chaotic(seed) : RandomTraces.conversations(seed, 60);
      TierPlan plan = randomPlan(random);
      long tokens = trace.stream().mapToLong(r -> r.prefixTokens(r.blockCount())).sum();
      try (RecordedTrace recorded = Analyses.record(trace)) {
        long[] computedTokens = new long[1];
        TierResult result =
            TierSimulation.run(
                recorded,
                plan,
                one(random, TouchOrder.values()),
                (request, found) ->
                    computedTokens[0] += request.prefixTokens(request.count) - found.all());

        assertThat(
                result.hbmBlocks()
                    + result.dramBlocks()
                    + result.diskBlocks()
                    + result.storageBlocks()
                    + result.computedBlocks())
            .as("seed %s, %s", seed, plan)
            .isEqualTo(recorded.references());
        assertThat(result.hitTokens() + computedTokens[0]).isEqualTo(tokens);
        TraceSummary summary = Analyses.analyze(trace).summary();
        assertThat(result.hitTokens()).isLessThanOrEqualTo(summary.idealHitTokens());
      }
    }
  }

  @Test
  void isTheExactCurveForEachTierAlone() throws InterruptedException {
    for (int seed = 0; seed < 100; seed++) {
      List<TraceRequest> trace = RandomTraces.conversations(seed, 40);
      TraceAnalysis analysis = Analyses.analyze(trace);
      try (RecordedTrace recorded = Analyses.record(trace)) {
        for (long capacity : new long[] {0, 1, 3, 10, 30, 100}) {
          for (WritePolicy policy : WritePolicy.values()) {
            for (TouchOrder order : TouchOrder.values()) {
              CacheHits hits = analysis.lru(order).at(capacity);
              assertThat(tiers(recorded, order, policy, capacity, 0, 0, 0).hbmBlocks())
                  .isEqualTo(hits.hitBlocks());
              assertThat(tiers(recorded, order, policy, 0, capacity, 0, 0).dramTokens())
                  .isEqualTo(hits.hitTokens());
              assertThat(tiers(recorded, order, policy, 0, 0, capacity, 0).diskBlocks())
                  .isEqualTo(hits.hitBlocks());
              assertThat(tiers(recorded, order, policy, 0, 0, 0, capacity).storageBlocks())
                  .isEqualTo(hits.hitBlocks());
            }
          }
        }
      }
    }
  }

  @Test
  void hitsTheIdealWhenSharedStorageHoldsAll() throws InterruptedException {
    List<TraceRequest> trace = RandomTraces.conversations(8, 300);
    long ideal = Analyses.analyze(trace).summary().idealHitTokens();
    try (RecordedTrace recorded = Analyses.record(trace)) {
      for (Routing routing : Routing.values()) {
        TierPlan plan =
            new TierPlan(2, 4, 20, 50, false, 70, ALL, true, WritePolicy.WRITE_THROUGH, routing);
        assertThat(TierSimulation.run(recorded, plan, TouchOrder.LEAF_LAST).hitTokens())
            .isEqualTo(ideal);
      }
    }
  }

  /** Requests of one block each: a b a c b, with room for one block in each tier. */
  @Test
  void movesBlocksAsTheWritePolicySays() throws InterruptedException {
    try (RecordedTrace recorded = Analyses.record(ofOneBlockEach(1, 2, 1, 3, 2))) {
      // a; b pushes a to DRAM; a hits there and pushes b to DRAM, which pushes a to storage;
      // c pushes a to DRAM, which pushes b to storage, where it hits.
      TierResult eviction =
          tiers(recorded, TouchOrder.LEAF_LAST, WritePolicy.ON_EVICTION, 1, 1, 0, 1);
      assertThat(List.of(eviction.hbmBlocks(), eviction.dramBlocks(), eviction.storageBlocks()))
          .containsExactly(0L, 1L, 1L);
      assertThat(eviction.storageWrites()).isEqualTo(3);
      assertThat(eviction.dramWrites()).isEqualTo(4);
      // Every tier holds the block computed last, so nothing hits.
      TierResult through =
          tiers(recorded, TouchOrder.LEAF_LAST, WritePolicy.WRITE_THROUGH, 1, 1, 0, 1);
      assertThat(through.hitTokens()).isZero();
      assertThat(through.storageWrites()).isEqualTo(5);
    }
  }

  /** Requests of one block each: a b c a a, with room for one block in DRAM and two on disks. */
  @Test
  void keepsBlocksOnDisksBeforeStorage() throws InterruptedException {
    try (RecordedTrace recorded = Analyses.record(ofOneBlockEach(1, 2, 3, 1, 1))) {
      // b and c are on disks when a is found in storage, which takes it to disks and DRAM.
      TierResult through =
          tiers(recorded, TouchOrder.LEAF_LAST, WritePolicy.WRITE_THROUGH, 0, 1, 2, 9);
      assertThat(List.of(through.dramBlocks(), through.diskBlocks(), through.storageBlocks()))
          .containsExactly(1L, 0L, 1L);
      assertThat(List.of(through.dramWrites(), through.diskWrites(), through.storageWrites()))
          .containsExactly(4L, 4L, 3L);
      // b pushes a to disks, where it is found twice.
      TierResult eviction =
          tiers(recorded, TouchOrder.LEAF_LAST, WritePolicy.ON_EVICTION, 0, 1, 2, 9);
      assertThat(List.of(eviction.dramBlocks(), eviction.diskBlocks(), eviction.storageBlocks()))
          .containsExactly(0L, 2L, 0L);
    }
  }

  @Test
  void findsMoreInHbmWhenSessionsStayWithTheirEngine() throws InterruptedException {
    try (RecordedTrace recorded = Analyses.record(chats())) {
      long scattered = hbmHits(recorded, Routing.ROUND_ROBIN);

      assertThat(hbmHits(recorded, Routing.SESSION)).isGreaterThan(2 * scattered);
      assertThat(hbmHits(recorded, Routing.PREFIX)).isGreaterThan(2 * scattered);
    }
  }

  @Test
  void findsSessionsTheirGapsAndWhatIsHot() throws InterruptedException {
    try (RecordedTrace recorded = Analyses.record(chats())) {
      TraceInsights insights = TraceInsights.of(recorded);

      assertThat(insights.sessions()).isEqualTo(16);
      assertThat(insights.reusedSessions()).isEqualTo(16);
      assertThat(insights.largestSession()).isEqualTo(10);
      assertThat(insights.sessionGaps()).isEqualTo(new Quantiles(16 * 9, 16, 16, 16, 16, 16));
      // Each turn but the last of a chat is used by the last one.
      assertThat(insights.lifetimes().count()).isEqualTo(16 * 9);
      assertThat(insights.requestsNeverReused()).isEqualTo(16);
      // Turns of a chat are 16 seconds apart: more than 10 and at most 30.
      assertThat(insights.timeBins().get(3).upToSeconds()).isEqualTo(30);
      assertThat(insights.timeBins().get(3).sessionGaps()).isEqualTo(16 * 9);
      assertThat(insights.timeBins().stream().mapToLong(TimeBin::blockGaps).sum())
          .isEqualTo(insights.blockGaps().count());
      assertThat(insights.timeBins().stream().mapToLong(TimeBin::lifetimes).sum())
          .isEqualTo(insights.lifetimes().count());
      assertThat(insights.timeBins().getLast().upToSeconds())
          .isGreaterThanOrEqualTo(insights.lifetimes().max());
      assertThat(insights.hotPrefixes().getFirst().requests()).isEqualTo(160);
      assertThat(insights.hotPrefixes().getFirst().blocks()).isEqualTo(2);
      assertThat(insights.hotPrefixes().getFirst().lastBlockId())
          .isEqualTo("00000000000000000000000000000002");
    }
  }

  @Test
  void refusesClustersThatCannotBe() {
    assertThatIllegalArgumentException().isThrownBy(() -> plan(0, 1, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> plan(1, 0, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> plan(100, 100, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> plan(1, 1, -1));
  }

  private static List<TraceRequest> ofOneBlockEach(long... ids) {
    return Arrays.stream(ids)
        .mapToObj(id -> new TraceRequest(0, "", 16, 1, 16, BlockIds.wrap(new long[] {0, id})))
        .toList();
  }

  /** 16 chats of 10 turns in turn, a second apart; a system prompt of two blocks. */
  private static List<TraceRequest> chats() {
    List<TraceRequest> trace = new ArrayList<>();
    for (int turn = 1; turn <= 10; turn++) {
      for (int chat = 0; chat < 16; chat++) {
        long[] ids = new long[2 * (2 + 3 * turn)];
        for (int i = 0; i < ids.length / 2; i++) {
          ids[2 * i + 1] = i < 2 ? i + 1 : 1000L * (chat + 1) + i;
        }
        trace.add(
            new TraceRequest(
                1000.0 * trace.size(), "", 16 * ids.length / 2, 1, 16, BlockIds.wrap(ids)));
      }
    }
    return trace;
  }

  private static long hbmHits(RecordedTrace trace, Routing routing) throws InterruptedException {
    TierPlan plan =
        new TierPlan(1, 7, 400, 0, false, 0, 0, true, WritePolicy.WRITE_THROUGH, routing);
    return TierSimulation.run(trace, plan, TouchOrder.LEAF_LAST).hbmBlocks();
  }

  private static TierResult tiers(
      RecordedTrace trace, TouchOrder order, WritePolicy policy, long... blocks)
      throws InterruptedException {
    TierPlan plan =
        new TierPlan(
            1,
            1,
            blocks[0],
            blocks[1],
            true,
            blocks[2],
            blocks[3],
            true,
            policy,
            Routing.ROUND_ROBIN);
    return TierSimulation.run(trace, plan, order);
  }

  private static TierPlan plan(int nodes, int ranks, long blocks) {
    return new TierPlan(
        nodes, ranks, blocks, 1, true, 1, 1, true, WritePolicy.WRITE_THROUGH, Routing.SESSION);
  }

  private static TierPlan randomPlan(Random random) {
    return new TierPlan(
        1 + random.nextInt(3),
        1 + random.nextInt(3),
        random.nextInt(20),
        random.nextInt(30),
        random.nextBoolean(),
        random.nextInt(3) * (long) random.nextInt(40),
        random.nextInt(60),
        random.nextBoolean(),
        one(random, WritePolicy.values()),
        one(random, Routing.values()));
  }

  private static <T> T one(Random random, T[] of) {
    return of[random.nextInt(of.length)];
  }
}

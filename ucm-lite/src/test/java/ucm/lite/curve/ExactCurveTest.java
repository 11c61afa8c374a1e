package ucm.lite.curve;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.NaiveCache;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceRequest;

/** The one-pass curve against a naive simulation, for every capacity. */
class ExactCurveTest {
  private static final int TRACES = 5_000;

  @Test
  void equalsTheNaiveSimulationAtEveryCapacityOnTracesWithDuplicates() {
    for (int seed = 0; seed < TRACES; seed++) {
      checkEveryCapacity("chaotic, seed " + seed, RandomTraces.chaotic(seed));
    }
  }

  @Test
  void equalsTheNaiveSimulationAtEveryCapacityOnConversations() {
    for (int seed = 0; seed < TRACES; seed++) {
      checkEveryCapacity("conversations, seed " + seed, RandomTraces.conversations(seed, 12));
    }
  }

  @Test
  void staysExactWhenTouchTimesAreRenumberedManyTimes() {
    List<TraceRequest> trace = RandomTraces.conversations(4711, 1500);
    TraceAnalysis analysis = Analyses.analyze(trace);

    assertThat(analysis.summary().blockReferences()).isGreaterThan(5000);
    for (long capacity : new long[] {1, 2, 7, 30, 100, 250, 700, 1500, 100_000}) {
      for (TouchOrder order : TouchOrder.values()) {
        assertThat(analysis.lru(order).at(capacity))
            .isEqualTo(NaiveCache.lru(order, capacity, trace));
      }
    }
  }

  @Test
  void findsTheSmallestCapacityForSomeHitsAndAKneeThatPays() {
    for (int seed = 0; seed < 400; seed++) {
      LruCurve curve =
          Analyses.analyze(RandomTraces.conversations(seed, 60)).lru(TouchOrder.LEAF_LAST);
      long most = curve.hitTokens(LruCurve.UNBOUNDED);
      assertThat(curve.smallestCapacity(0)).isZero();
      assertThat(curve.smallestCapacity(most + 1)).isEqualTo(LruCurve.UNBOUNDED);
      for (long wanted = 1; wanted <= most; wanted += 1 + most / 100) {
        long capacity = curve.smallestCapacity(wanted);
        assertThat(curve.hitTokens(capacity)).isGreaterThanOrEqualTo(wanted);
        assertThat(curve.hitTokens(capacity - 1)).isLessThan(wanted);
      }
      if (most > 0) {
        assertThat(curve.hitTokens(curve.kneeCapacity())).isPositive();
      }
    }
  }

  private static void checkEveryCapacity(String name, List<TraceRequest> trace) {
    TraceAnalysis analysis = Analyses.analyze(trace);
    for (int capacity = 0; capacity <= analysis.summary().uniqueBlocks() + 2; capacity++) {
      for (TouchOrder order : TouchOrder.values()) {
        CacheHits expected = NaiveCache.lru(order, capacity, trace);
        CacheHits found = analysis.lru(order).at(capacity);
        if (!found.equals(expected)) {
          assertThat(found)
              .as("%s, %s, capacity %s", name, order.key(), capacity)
              .isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void findsTheKneeOfACurve() {
    DistanceHistogram hits = new DistanceHistogram(/* exact= */ true);
    // Steep to 10 blocks, then flat.
    for (int capacity = 1; capacity <= 100; capacity++) {
      int blocks = capacity <= 10 ? 100 : 1;
      hits.add(capacity, blocks, blocks);
    }
    DistanceHistogram none = new DistanceHistogram(/* exact= */ true);

    assertThat(LruCurve.of(TouchOrder.LEAF_LAST, 1, hits, 0, 0).kneeCapacity()).isEqualTo(10);
    assertThat(LruCurve.of(TouchOrder.LEAF_LAST, 1, none, 0, 0).kneeCapacity()).isZero();
  }
}

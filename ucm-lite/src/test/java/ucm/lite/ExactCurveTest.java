package ucm.lite;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/** The one-pass statistics against a naive simulation, for every capacity. */
class ExactCurveTest {
  private static final int TRACES = 400;

  @Test
  void equalsTheNaiveSimulationAtEveryCapacityOnTracesWithDuplicates() {
    for (int seed = 0; seed < TRACES; seed++) {
      checkEveryCapacity("chaotic, seed " + seed, RandomTraces.chaotic(seed));
    }
  }

  @Test
  void equalsTheNaiveSimulationAtEveryCapacityOnConversations() {
    for (int seed = 0; seed < TRACES; seed++) {
      checkEveryCapacity("conversations, seed " + seed, RandomTraces.conversations(seed, 25));
    }
  }

  @Test
  void staysExactWhenTouchTimesAreDealtAnewManyTimes() {
    List<TraceRequest> trace = RandomTraces.conversations(4711, 1500);
    TraceAnalysis analysis = analyze(trace, 0);

    assertThat(analysis.summary().blockReferences()).isGreaterThan(5000);
    for (long capacity : new long[] {1, 2, 7, 30, 100, 250, 700, 1500, 100_000}) {
      for (TouchOrder order : TouchOrder.values()) {
        assertThat(analysis.lru(order).at(capacity))
            .isEqualTo(NaiveCache.lru(order, capacity, trace));
      }
    }
  }

  @Test
  void simulatesFifoInBothTouchOrders() {
    for (int seed = 0; seed < TRACES; seed++) {
      List<TraceRequest> trace = RandomTraces.chaotic(seed);
      long[] capacities = LongStream.rangeClosed(0, 13).toArray();
      FifoSimulation fifo = new FifoSimulation(TouchOrder.ROOT_LAST, capacities);
      feed(fifo, trace);

      for (CacheHits hits : fifo.results()) {
        assertThat(hits)
            .as("seed %s", seed)
            .isEqualTo(NaiveCache.fifo(TouchOrder.ROOT_LAST, hits.capacityBlocks(), trace));
      }
    }
  }

  @Test
  void growsWithTheCapacityAndEndsAtTheIdeal() {
    for (int seed = 0; seed < TRACES; seed++) {
      TraceAnalysis analysis = analyze(RandomTraces.conversations(seed, 60), 0);
      TraceSummary summary = analysis.summary();
      for (TouchOrder order : TouchOrder.values()) {
        LruCurve curve = analysis.lru(order);
        long hits = 0;
        for (int step = 0; step < curve.stepCount(); step++) {
          long capacity = curve.stepCapacity(step);
          assertThat(curve.hitBlocks(capacity)).isGreaterThan(hits);
          assertThat(curve.hitBlocks(capacity - 1)).isEqualTo(hits);
          hits = curve.hitBlocks(capacity);
        }
        assertThat(curve.at(LruCurve.UNBOUNDED))
            .isEqualTo(
                new CacheHits(
                    LruCurve.UNBOUNDED, summary.idealHitBlocks(), summary.idealHitTokens()));
        assertThat(curve.hitBlocks(summary.uniqueBlocks())).isEqualTo(summary.idealHitBlocks());
      }
    }
  }

  private static void checkEveryCapacity(String name, List<TraceRequest> trace) {
    long distinct = analyze(trace).summary().uniqueBlocks();
    long[] capacities = LongStream.rangeClosed(0, distinct + 2).toArray();
    TraceAnalysis analysis = analyze(trace, capacities);

    for (int capacity = 0; capacity < capacities.length; capacity++) {
      for (TouchOrder order : TouchOrder.values()) {
        assertThat(analysis.lru(order).at(capacity))
            .as("%s, %s, capacity %s", name, order.key(), capacity)
            .isEqualTo(NaiveCache.lru(order, capacity, trace));
      }
      assertThat(analysis.fifo().get(capacity))
          .as("%s, fifo, capacity %s", name, capacity)
          .isEqualTo(NaiveCache.fifo(TouchOrder.LEAF_LAST, capacity, trace));
    }
  }

  private static TraceAnalysis analyze(List<TraceRequest> trace, long... fifoCapacities) {
    TraceAnalyzer analyzer = new TraceAnalyzer(fifoCapacities);
    trace.forEach(analyzer::request);
    return analyzer.finish();
  }

  private static void feed(PrefixModel model, List<TraceRequest> trace) {
    BlockIndex index = new BlockIndex();
    for (TraceRequest request : trace) {
      int before = index.size();
      int[] blocks = new int[request.blockCount()];
      int known = 0;
      for (int i = 0; i < blocks.length; i++) {
        blocks[i] = index.number(request.blockIdHigh(i), request.blockIdLow(i));
        known += known == i && blocks[i] < before ? 1 : 0;
      }
      model.accept(request, blocks, blocks.length, known, index.size());
    }
  }
}

package ucm.lite.policy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.lite.curve.Analyses;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;
import ucm.lite.trace.ExhaustiveSearch;
import ucm.lite.trace.NaiveCache;
import ucm.lite.trace.RandomTraces;
import ucm.lite.trace.TraceRequest;

class PolicySimulationTest {
  private static final int TRACES = 120;

  @ParameterizedTest
  @EnumSource
  void fifoAndLruEqualTheNaiveSimulation(TouchOrder order) throws InterruptedException {
    for (int seed = 0; seed < TRACES; seed++) {
      List<TraceRequest> trace = RandomTraces.chaotic(seed);
      long[] capacities = LongStream.rangeClosed(0, 13).toArray();
      try (RecordedTrace recorded = Analyses.record(trace)) {
        for (CacheHits hits :
            Analyses.simulate(recorded, SimulatedPolicy.FIFO, order, capacities)) {
          assertThat(hits)
              .as("fifo, seed %s", seed)
              .isEqualTo(NaiveCache.fifo(order, hits.capacityBlocks(), trace));
        }
        for (CacheHits hits : Analyses.simulate(recorded, SimulatedPolicy.LRU, order, capacities)) {
          assertThat(hits)
              .as("lru, seed %s", seed)
              .isEqualTo(NaiveCache.lru(order, hits.capacityBlocks(), trace));
        }
      }
    }
  }

  @Test
  void s3FifoEqualsThePaperWrittenPlainly() throws InterruptedException {
    for (int seed = 0; seed < TRACES; seed++) {
      for (TouchOrder order : TouchOrder.values()) {
        check(order, RandomTraces.chaotic(seed), seed, 1, 2, 3, 5, 8, 13);
        check(order, RandomTraces.conversations(seed, 60), seed, 1, 4, 15, 20, 40);
      }
    }
  }

  private static void check(
      TouchOrder order, List<TraceRequest> trace, int seed, long... capacities)
      throws InterruptedException {
    try (RecordedTrace recorded = Analyses.record(trace)) {
      int blocks = recorded.uniqueBlocks();
      for (CacheHits hits :
          Analyses.simulate(recorded, SimulatedPolicy.S3_FIFO, order, capacities)) {
        int capacity = (int) Math.min(hits.capacityBlocks(), blocks);
        CacheHits expected = new NaiveS3Fifo(capacity).run(trace, order);
        assertThat(hits)
            .as("%s, seed %s", order.key(), seed)
            .isEqualTo(
                new CacheHits(hits.capacityBlocks(), expected.hitBlocks(), expected.hitTokens()));
      }
    }
  }

  @Test
  void theOptimumBoundsEveryPolicyAtEveryCapacity() throws InterruptedException {
    for (int seed = 0; seed < TRACES; seed++) {
      for (List<TraceRequest> trace :
          List.of(RandomTraces.chaotic(seed), RandomTraces.conversations(seed, 40))) {
        try (RecordedTrace recorded = Analyses.record(trace)) {
          long[] capacities = LongStream.rangeClosed(0, recorded.uniqueBlocks() + 1).toArray();
          for (TouchOrder order : TouchOrder.values()) {
            checkBound(recorded, order, capacities, "seed " + seed);
          }
        }
      }
    }
  }

  private static void checkBound(
      RecordedTrace trace, TouchOrder order, long[] capacities, String name)
      throws InterruptedException {
    List<PolicyHits> all =
        new PolicySimulation(trace, order, 1)
            .run(Arrays.asList(SimulatedPolicy.values()), capacities);
    int n = capacities.length;
    List<PolicyHits> bound = all.subList(all.size() - n, all.size());
    for (int i = 0; i < all.size(); i++) {
      CacheHits hits = all.get(i).hits();
      CacheHits most = bound.get(i % n).hits();
      assertThat(hits.hitBlocks())
          .as("%s, %s at %s", name, all.get(i).policy(), hits.capacityBlocks())
          .isLessThanOrEqualTo(most.hitBlocks());
      assertThat(hits.hitTokens()).isLessThanOrEqualTo(most.hitTokens());
    }
  }

  @Test
  void theOptimumIsWhatAnExhaustiveSearchFindsForPrefixes() throws InterruptedException {
    for (int seed = 0; seed < 150; seed++) {
      List<TraceRequest> trace = RandomTraces.conversations(seed, 5);
      try (RecordedTrace recorded = Analyses.record(trace)) {
        if (recorded.uniqueBlocks() > 12) {
          continue;
        }
        for (int capacity = 0; capacity <= 5; capacity++) {
          CacheHits bound =
              Analyses.simulate(recorded, SimulatedPolicy.OPTIMAL, TouchOrder.LEAF_LAST, capacity)
                  .getFirst();
          assertThat(bound.hitBlocks())
              .as("seed %s, capacity %s", seed, capacity)
              .isEqualTo(ExhaustiveSearch.mostHits(trace, capacity));
        }
      }
    }
  }

  @Test
  void givesTheSameResultsOnSeveralThreads() throws InterruptedException {
    try (RecordedTrace trace = Analyses.record(RandomTraces.conversations(3, 500))) {
      List<SimulatedPolicy> policies = Arrays.asList(SimulatedPolicy.values());
      long[] capacities = {0, 3, 50, 200, 1000};
      List<PolicyHits> one =
          new PolicySimulation(trace, TouchOrder.LEAF_LAST, 1).run(policies, capacities);
      List<PolicyHits> four =
          new PolicySimulation(trace, TouchOrder.LEAF_LAST, 4).run(policies, capacities);

      assertThat(four).isEqualTo(one).hasSize(policies.size() * capacities.length);
    }
  }

  @Test
  void endsWhenInterrupted() {
    List<TraceRequest> trace = new ArrayList<>(RandomTraces.conversations(3, 500));
    try (RecordedTrace recorded = Analyses.record(trace)) {
      Thread.currentThread().interrupt();
      PolicySimulation simulation = new PolicySimulation(recorded, TouchOrder.LEAF_LAST, 2);

      assertThatExceptionOfType(InterruptedException.class)
          .isThrownBy(() -> simulation.run(List.of(SimulatedPolicy.LRU), 10));
    } finally {
      Thread.interrupted();
    }
  }

  @Test
  void refusesNegativeCapacities() {
    try (RecordedTrace recorded = Analyses.record(RandomTraces.conversations(3, 5))) {
      PolicySimulation simulation = new PolicySimulation(recorded, TouchOrder.LEAF_LAST, 1);

      assertThatIllegalArgumentException()
          .isThrownBy(() -> simulation.run(List.of(SimulatedPolicy.LRU), 5, -1));
    }
  }

  @Test
  void findsPoliciesByTheirKeys() {
    for (SimulatedPolicy policy : SimulatedPolicy.values()) {
      assertThat(SimulatedPolicy.of(policy.key())).contains(policy);
    }
    assertThat(SimulatedPolicy.of("S3-Fifo")).contains(SimulatedPolicy.S3_FIFO);
    assertThat(SimulatedPolicy.of("clock")).isEmpty();
  }
}

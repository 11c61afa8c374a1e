package ucm.lite.policy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.IntTape;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;

/**
 * Simulates eviction policies at chosen capacities over a recorded trace, each policy and capacity
 * by itself, in parallel. The trace was read and its blocks were numbered once for all of them.
 *
 * <p>Memory: at most 70 bytes a distinct block for each thread, and 4 bytes a reference when {@link
 * SimulatedPolicy#OPTIMAL} is among the policies. Immutable.
 */
public record PolicySimulation(RecordedTrace trace, TouchOrder order, int threads) {
  /**
   * Simulates every policy at every capacity, in blocks. Blocks until all are done, or the calling
   * thread is interrupted. The hits are in the order of the policies, each in the order of the
   * capacities.
   */
  public List<PolicyHits> run(List<SimulatedPolicy> policies, long... capacities)
      throws InterruptedException {
    for (long capacity : capacities) {
      if (capacity < 0) {
        throw new IllegalArgumentException("capacity " + capacity + " is negative");
      }
    }
    // Simulations that end at once would be over before their results are awaited.
    if (Thread.interrupted()) {
      throw new InterruptedException();
    }
    try (IntTape nextUses =
            policies.contains(SimulatedPolicy.OPTIMAL) ? OptimalBound.nextUses(trace) : null;
        ExecutorService executor =
            Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().name("ucm-lite-simulation-", 0).factory())) {
      List<Callable<PolicyHits>> runs = new ArrayList<>();
      for (SimulatedPolicy policy : policies) {
        for (long capacity : capacities) {
          runs.add(() -> new PolicyHits(policy, simulate(policy, capacity, nextUses)));
        }
      }
      List<PolicyHits> results = new ArrayList<>();
      for (Future<PolicyHits> run : executor.invokeAll(runs)) {
        results.add(run.get());
      }
      return results;
    } catch (ExecutionException e) {
      throw new IllegalStateException("a simulation failed", e.getCause());
    }
  }

  private CacheHits simulate(SimulatedPolicy policy, long capacity, @Nullable IntTape nextUses)
      throws InterruptedException {
    if (nextUses != null && policy == SimulatedPolicy.OPTIMAL) {
      OptimalBound bound = new OptimalBound(nextUses, capacity, trace.uniqueBlocks());
      trace.feed(bound);
      return bound.hits();
    }
    BlockCache cache = policy.cache(capacity, trace.uniqueBlocks());
    long[] hits = new long[2];
    trace.feed(
        request -> {
          int run = 0;
          while (run < request.known && cache.contains(request.blocks[run])) {
            run++;
          }
          hits[0] += run;
          hits[1] += request.prefixTokens(run);
          if (cache.capacity > 0) {
            cache.touchAll(request, order);
          }
        });
    return new CacheHits(capacity, hits[0], hits[1]);
  }
}

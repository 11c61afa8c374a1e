package ucm.lite.policy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import ucm.lite.curve.CacheHits;
import ucm.lite.record.RecordedTrace;
import ucm.lite.record.TouchOrder;

/**
 * Simulates eviction policies at chosen capacities over a recorded trace, each policy and capacity
 * by itself, in parallel. The trace was read and its blocks were numbered once for all of them.
 *
 * <p>Memory: at most 20 bytes a distinct block for each thread, and 4 bytes a reference when {@link
 * CachePolicy#OPTIMAL} is among the policies. Immutable.
 */
public final class PolicySimulation {
  private final RecordedTrace trace;
  private final TouchOrder order;
  private final int threads;

  /**
   * Creates a simulation.
   *
   * @param trace the requests; not closed
   * @param order in which the blocks of a request are touched; prefix-aware LRU and the optimum know
   *     only one
   * @param threads how many simulations run at a time, 1 or more
   */
  public PolicySimulation(RecordedTrace trace, TouchOrder order, int threads) {
    this.trace = trace;
    this.order = order;
    this.threads = threads;
  }

  /**
   * Simulates every policy at every capacity. Blocks until all are done.
   *
   * @param policies the policies
   * @param capacities capacities in blocks, 0 or more
   * @return the hits, policy by policy, each in the order of the capacities
   * @throws IllegalArgumentException when a capacity is negative
   * @throws InterruptedException when the calling thread is interrupted; the simulations end
   */
  public List<PolicyHits> run(List<CachePolicy> policies, long... capacities)
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
    AtomicInteger threadNumber = new AtomicInteger();
    try (NextUses nextUses = policies.contains(CachePolicy.OPTIMAL) ? new NextUses(trace) : null;
        ExecutorService executor =
            Executors.newFixedThreadPool(
                threads,
                task ->
                    new Thread(task, "ucm-lite-simulation-" + threadNumber.getAndIncrement()))) {
      List<Callable<PolicyHits>> runs = new ArrayList<>();
      for (CachePolicy policy : policies) {
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

  private CacheHits simulate(CachePolicy policy, long capacity, @Nullable NextUses nextUses)
      throws InterruptedException {
    if (nextUses != null && policy == CachePolicy.OPTIMAL) {
      OptimalBound bound = new OptimalBound(nextUses, capacity, trace.uniqueBlocks());
      trace.feed(bound);
      return bound.hits();
    }
    PolicyRun run = new PolicyRun(policy.cache(capacity, trace.uniqueBlocks()), order);
    trace.feed(run);
    return run.hits(capacity);
  }
}

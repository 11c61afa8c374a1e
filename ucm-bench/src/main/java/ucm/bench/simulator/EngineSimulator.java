package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;

/**
 * The loop of an engine: requests come, a step is chosen, planned, computed, and its results handed on,
 * until all requests are finished. Used by one thread, for one run.
 */
public final class EngineSimulator {

  interface Steps {
    /**
     * Loads, computes and saves a step: returns when the engine would have the result, with its blocks
     * that could not be loaded.
     */
    BitSet run(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException;
  }

  private final EngineClock clock;
  private final ComputeModel compute;
  private final BatchScheduler scheduler;
  private final @Nullable SchedulerConnector connector;
  private final Steps runner;
  private final List<ServeResult.Served> served = new ArrayList<>();
  private int steps;
  private int mostRequests;
  private long loaded;
  private long saved;

  /** An engine at rest; one without UCM has no connector. */
  EngineSimulator(
      EnginePlan plan,
      BlockHasher hasher,
      EngineClock clock,
      ComputeModel compute,
      @Nullable SchedulerConnector connector,
      Steps runner) {
    this.clock = clock;
    this.compute = compute;
    this.connector = connector;
    this.runner = runner;
    this.scheduler =
        new BatchScheduler(plan.memory(), hasher, connector, plan.stepTokens(), plan.maxRunning());
  }

  /** Serves requests without UCM: everything is computed, without bytes, and no real time passes. */
  public static ServeResult computeEverything(
      EnginePlan plan, BlockHasher hasher, ComputeModel compute, List<ServeRequest> requests)
      throws InterruptedException {
    EngineClock.Virtual clock = new EngineClock.Virtual();
    Steps computeOnly =
        (_, _, nanos) -> {
          clock.waitUntil(clock.nanos() + nanos);
          return new BitSet();
        };
    return new EngineSimulator(plan, hasher, clock, compute, null, computeOnly)
        .run(requests, _ -> {});
  }

  /** Serves requests; after each step it says how many are finished. */
  ServeResult run(List<ServeRequest> requests, IntConsumer finished) throws InterruptedException {
    List<ServeRequest> coming = new ArrayList<>(requests);
    coming.sort(Comparator.comparingLong(ServeRequest::arrivalNanos));
    long origin = clock.nanos();
    int arrived = 0;
    while (served.size() < coming.size()) {
      long now = clock.nanos() - origin;
      while (arrived < coming.size() && coming.get(arrived).arrivalNanos() <= now) {
        scheduler.add(coming.get(arrived++));
      }
      Batch batch = scheduler.next();
      if (batch.isEmpty()) {
        clock.waitUntil(origin + coming.get(arrived).arrivalNanos());
        continue;
      }
      step(batch, origin);
      finished.accept(served.size());
    }
    return new ServeResult(
        served,
        steps,
        mostRequests,
        scheduler.preemptions(),
        loaded - scheduler.failedBlocks(),
        scheduler.failedBlocks(),
        saved,
        (clock.nanos() - origin) / 1e9);
  }

  private void step(Batch batch, long origin) throws InterruptedException {
    StepPlan plan = connector == null ? StepPlan.EMPTY : connector.plan(batch.scheduled());
    BitSet failed = runner.run(batch, plan, compute.stepNanos(batch));
    long now = clock.nanos();
    for (ServeRequest request : scheduler.computed(batch, failed, now)) {
      served.add(request.served(origin, now));
    }
    steps++;
    mostRequests = Math.max(mostRequests, batch.parts().size());
    loaded += plan.loadBlocks();
    saved += plan.saveBlocks();
  }
}

package ucm.bench.simulator;

import java.util.BitSet;
import ucm.pipeline.connector.engine.StepPlan;

/** Steps of an engine without UCM: they take the time of their compute, and no bytes are there. */
final class ComputeOnly implements StepRunner {

  private final EngineClock clock;

  ComputeOnly(EngineClock clock) {
    this.clock = clock;
  }

  @Override
  public BitSet run(Batch batch, StepPlan plan, long computeNanos) throws InterruptedException {
    clock.waitUntil(clock.nanos() + computeNanos);
    return new BitSet();
  }
}

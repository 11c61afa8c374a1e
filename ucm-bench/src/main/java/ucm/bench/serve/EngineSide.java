package ucm.bench.serve;

import java.util.List;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.WorkerConnector;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.ScheduledRequest;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.server.client.RemoteScheduler;

/** The scheduler side of an engine and its one rank: in this process, or through the daemon. */
record EngineSide(
    Lookup lookup, Allocation allocation, Plan plan, End end, WorkerConnector worker) {

  interface Lookup {
    int matchedTokens(PromptRequest request, int computedTokens);
  }

  interface Allocation {
    void allocated(String requestId, int[] blocks, int externalTokens);
  }

  interface Plan {
    StepPlan plan(List<ScheduledRequest> scheduled);
  }

  interface End {
    void finished(String requestId);
  }

  static EngineSide of(SchedulerConnector scheduler, WorkerConnector worker) {
    return new EngineSide(
        scheduler::matchedTokens,
        scheduler::allocated,
        scheduler::plan,
        scheduler::finished,
        worker);
  }

  static EngineSide of(RemoteScheduler scheduler, WorkerConnector worker) {
    return new EngineSide(
        scheduler::matchedTokens,
        scheduler::allocated,
        scheduler::plan,
        scheduler::finished,
        worker);
  }
}

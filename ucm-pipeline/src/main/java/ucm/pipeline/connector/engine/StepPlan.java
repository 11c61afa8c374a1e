package ucm.pipeline.connector.engine;

import java.util.List;

/**
 * What a step of the engine loads and saves. The same plan goes to every rank, which derives its own
 * ids from it. Immutable.
 *
 * @param requests those that load or save something
 */
public record StepPlan(List<RequestPlan> requests) {

  public static final StepPlan EMPTY = new StepPlan(List.of());

  public StepPlan {
    requests = List.copyOf(requests);
  }

  /** How many blocks are loaded. */
  public int loadBlocks() {
    return requests.stream().mapToInt(request -> request.loadBlocks().length).sum();
  }

  /** How many blocks are saved. */
  public int saveBlocks() {
    return requests.stream().mapToInt(request -> request.saveBlocks().length).sum();
  }
}

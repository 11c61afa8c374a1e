package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.List;
import ucm.pipeline.connector.engine.ScheduledRequest;

/**
 * What a step computes.
 *
 * @param parts of which requests; a request has one part at the most
 */
record Batch(List<Part> parts) {

  /**
   * A request's part in a step.
   *
   * @param from first token to compute; those before are there, or loaded by this step
   * @param newTokens how many to compute
   * @param loadFrom first block that is loaded, inclusive
   * @param loadTo last block that is loaded, exclusive
   * @param newBlocks what the connector is told of the request's table
   */
  // These are never compared.
  @SuppressWarnings("ArrayRecordComponent")
  record Part(
      ServeRequest request, int from, int newTokens, int loadFrom, int loadTo, int[] newBlocks) {

    int to() {
      return from + newTokens;
    }

    /** Whether a token is computed that was generated. */
    boolean decodes() {
      return to() > request.promptTokens();
    }
  }

  boolean isEmpty() {
    return parts.isEmpty();
  }

  /** As the connector is told. */
  List<ScheduledRequest> scheduled() {
    List<ScheduledRequest> scheduled = new ArrayList<>(parts.size());
    for (Part part : parts) {
      scheduled.add(
          new ScheduledRequest(
              part.request.id(), part.from, part.newTokens, part.newBlocks, false));
    }
    return scheduled;
  }

  /** The blocks that the step completes. */
  List<PageRun> completed(int blockTokens) {
    List<PageRun> runs = new ArrayList<>();
    for (Part part : parts) {
      int from = Math.max(part.from / blockTokens, part.loadTo);
      int to = Math.min(part.to() / blockTokens, part.request.ids().size());
      addRun(runs, part.request, from, to);
    }
    return runs;
  }

  /** The blocks that the step loads. */
  List<PageRun> loaded() {
    List<PageRun> runs = new ArrayList<>();
    for (Part part : parts) {
      addRun(runs, part.request, part.loadFrom, part.loadTo);
    }
    return runs;
  }

  private static void addRun(List<PageRun> runs, ServeRequest request, int from, int to) {
    if (from < to) {
      runs.add(new PageRun(request.ids().slice(from, to), request.table(from, to)));
    }
  }
}

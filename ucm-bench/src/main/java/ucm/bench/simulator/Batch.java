package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.ScheduledRequest;

/** What a step computes; a request has one part at the most. */
record Batch(List<Part> parts) {

  /**
   * A request's part in a step: new tokens from the first one that is neither there nor loaded by this step,
   * blocks {@code loadFrom} (inclusive) to {@code loadTo} (exclusive), and what the connector is told of
   * the request's table.
   */
  @SuppressWarnings("ArrayRecordComponent") // These are never compared.
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

  /** Blocks of a prompt, as rank 0 names them, and the engine's block for each. */
  @SuppressWarnings("ArrayRecordComponent") // These are never compared.
  record Pages(BlockIds ids, int[] pages) {}

  boolean isEmpty() {
    return parts.isEmpty();
  }

  List<ScheduledRequest> scheduled() {
    return parts.stream()
        .map(
            part ->
                new ScheduledRequest(
                    part.request.id(), part.from, part.newTokens, part.newBlocks, false))
        .toList();
  }

  List<Pages> completed(int blockTokens) {
    return pages(
        part -> Math.max(part.from / blockTokens, part.loadTo),
        part -> Math.min(part.to() / blockTokens, part.request.ids().size()));
  }

  List<Pages> loaded() {
    return pages(Part::loadFrom, Part::loadTo);
  }

  private List<Pages> pages(ToIntFunction<Part> from, ToIntFunction<Part> to) {
    List<Pages> all = new ArrayList<>();
    for (Part part : parts) {
      int first = from.applyAsInt(part);
      int end = to.applyAsInt(part);
      if (first < end) {
        all.add(new Pages(part.request.ids().slice(first, end), part.request.table(first, end)));
      }
    }
    return all;
  }
}

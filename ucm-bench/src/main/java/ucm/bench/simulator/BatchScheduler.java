package ucm.bench.simulator;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.hash.BlockHasher;

/**
 * Chooses what each step computes, first come, first served, as the scheduler of vLLM (version 1) does:
 * requests that run go on, each with as many tokens as the step has left; when one finds no block, the
 * request that came last loses its memory and waits again, at the head of the queue; only when no request had to
 * give way, requests that wait are admitted as long as there is room. Used by one thread.
 */
final class BatchScheduler {

  private final PagedKvMemory memory;
  private final BlockHasher hasher;
  private final @Nullable SchedulerConnector connector;
  private final int stepTokens;
  private final int maxRunning;
  private final Deque<ServeRequest> waiting = new ArrayDeque<>();
  private final List<ServeRequest> running = new ArrayList<>();
  private int preemptions;
  private int failedBlocks;

  /** A scheduler without requests; without a connector, of an engine that computes everything. */
  BatchScheduler(
      PagedKvMemory memory,
      BlockHasher hasher,
      @Nullable SchedulerConnector connector,
      int stepTokens,
      int maxRunning) {
    this.memory = memory;
    this.hasher = hasher;
    this.connector = connector;
    this.stepTokens = stepTokens;
    this.maxRunning = maxRunning;
  }

  void add(ServeRequest request) {
    int needed = Math.ceilDiv(request.mostTokens(), memory.blockTokens());
    if (needed > memory.blocks()) {
      throw new IllegalArgumentException(
          "request %s needs %s blocks, and the KV memory has %s"
              .formatted(request.id(), needed, memory.blocks()));
    }
    waiting.add(request);
  }

  /** The next step; empty when there is nothing to do. */
  Batch next() {
    List<Batch.Part> parts = new ArrayList<>();
    int before = preemptions;
    int left = stepTokens;
    for (int i = 0; i < running.size() && left > 0; i++) {
      ServeRequest request = running.get(i);
      int tokens = Math.min(left, request.known() - request.computed());
      if (makeRoom(request, request.computed() + tokens)) {
        parts.add(new Batch.Part(request, request.computed(), tokens, 0, 0, request.newBlocks()));
        left -= tokens;
      }
    }
    while (preemptions == before && left > 0 && running.size() < maxRunning && !waiting.isEmpty()) {
      Batch.Part part = admit(waiting.getFirst(), left);
      if (part == null) {
        break;
      }
      running.add(waiting.removeFirst());
      parts.add(part);
      left -= part.newTokens();
    }
    return new Batch(parts);
  }

  /** Gives a running request room, at the cost of those that came later; false when it gave way. */
  private boolean makeRoom(ServeRequest request, int tokens) {
    while (!memory.grow(request, tokens)) {
      ServeRequest last = running.removeLast();
      memory.release(last);
      last.preempted();
      waiting.addFirst(last);
      preemptions++;
      if (last.equals(request)) {
        return false;
      }
    }
    return true;
  }

  private Batch.@Nullable Part admit(ServeRequest request, int left) {
    request.hash(hasher, memory.blockTokens());
    int cached = memory.cachedBlocks(request);
    int onDevice = cached * memory.blockTokens();
    int external = connector == null ? 0 : connector.matchedTokens(request.asked(), onDevice);
    int from = onDevice + external;
    int tokens = Math.min(left, request.known() - from);
    if (!memory.admit(request, cached, from + tokens)) {
      return null;
    }
    if (connector != null) {
      connector.allocated(request.id(), request.table(0, request.table().size()), external);
    }
    request.admitted(onDevice, external);
    int loadTo = external == 0 ? cached : Math.ceilDiv(from, memory.blockTokens());
    return new Batch.Part(request, from, tokens, cached, loadTo, request.newBlocks());
  }

  /**
   * A step has been computed, but for what was computed from failed blocks, which is computed
   * again. Returns the requests that are finished.
   */
  List<ServeRequest> computed(Batch batch, BitSet failed, long nanos) {
    List<ServeRequest> finished = new ArrayList<>();
    failedBlocks += failed.cardinality();
    for (Batch.Part part : batch.parts()) {
      ServeRequest request = part.request();
      int bad = firstOf(failed, part);
      if (bad >= 0) {
        request.backTo(bad * memory.blockTokens());
        continue;
      }
      request.advance(part.newTokens(), nanos);
      memory.remember(request, request.computed() / memory.blockTokens());
      if (request.done()) {
        running.remove(request);
        memory.release(request);
        if (connector != null) {
          connector.finished(request.id());
        }
        finished.add(request);
      }
    }
    return finished;
  }

  private static int firstOf(BitSet failed, Batch.Part part) {
    for (int i = part.loadFrom(); i < part.loadTo(); i++) {
      if (failed.get(part.request().table().get(i))) {
        return i;
      }
    }
    return -1;
  }

  int preemptions() {
    return preemptions;
  }

  int failedBlocks() {
    return failedBlocks;
  }
}

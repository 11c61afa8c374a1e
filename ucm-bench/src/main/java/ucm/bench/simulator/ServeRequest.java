package ucm.bench.simulator;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/** A request, and how far the engine is with it. Used by the engine's thread. */
public final class ServeRequest {

  private final String id;
  private final int promptTokens;
  private final int outputTokens;
  private final long arrivalNanos;
  private int[] tokens;
  private BlockIds ids = BlockIds.empty();
  private int[] hashed = {};
  private final List<Integer> table = new ArrayList<>();
  private int announced;
  private int computed;
  private int generated;
  private int preemptions;
  private int hbmTokens;
  private int externalTokens;
  private long firstTokenNanos = -1;

  /** A request for 1 token or more that comes some time after the start of the run. */
  public ServeRequest(String id, int[] prompt, int outputTokens, long arrivalNanos) {
    if (prompt.length == 0 || outputTokens < 1) {
      throw new IllegalArgumentException(
          "request " + id + " needs a token to compute and one to generate");
    }
    this.id = id;
    this.tokens = prompt;
    this.promptTokens = prompt.length;
    this.outputTokens = outputTokens;
    this.arrivalNanos = arrivalNanos;
  }

  public String id() {
    return id;
  }

  /** When it comes, in nanoseconds from the start of the run. */
  public long arrivalNanos() {
    return arrivalNanos;
  }

  /** Most tokens that its KV cache will have. */
  public int mostTokens() {
    return promptTokens + outputTokens;
  }

  int promptTokens() {
    return promptTokens;
  }

  /** Tokens that are known: the prompt and what was generated. */
  int known() {
    return tokens.length;
  }

  /** Tokens whose KV cache is on the device. */
  int computed() {
    return computed;
  }

  PromptRequest asked() {
    return new PromptRequest(id, tokens, promptTokens, outputTokens, PromptVariant.NONE);
  }

  /** The names of its full blocks; tokens that were generated since it was admitted have none. */
  BlockIds ids() {
    return ids;
  }

  // The same array is the same tokens.
  @SuppressWarnings("ReferenceEquality")
  void hash(BlockHasher hasher, int blockTokens) {
    if (hashed != tokens) {
      hashed = tokens;
      ids = hasher.hash(tokens, blockTokens);
    }
  }

  void admitted(int onDevice, int external) {
    computed = onDevice + external;
    announced = table.size();
    if (firstTokenNanos < 0 && preemptions == 0) {
      hbmTokens = onDevice;
      externalTokens = external;
    }
  }

  /** Its blocks; changed by the KV memory alone. */
  List<Integer> table() {
    return table;
  }

  int[] table(int from, int to) {
    return table.subList(from, to).stream().mapToInt(Integer::intValue).toArray();
  }

  /** Blocks that the connector has not been told of. */
  int[] newBlocks() {
    int[] blocks = table(announced, table.size());
    announced = table.size();
    return blocks;
  }

  void preempted() {
    computed = 0;
    preemptions++;
  }

  /** The blocks after one that could not be loaded are computed again. */
  void backTo(int tokens) {
    computed = tokens;
  }

  /** Has computed some tokens; the last known one gives another. */
  void advance(int tokens, long nanos) {
    computed += tokens;
    if (computed < known()) {
      return;
    }
    if (firstTokenNanos < 0) {
      firstTokenNanos = nanos;
    }
    generated++;
    if (!done()) {
      // What is generated does not matter; it must differ from request to request.
      int[] longer = Arrays.copyOf(this.tokens, known() + 1);
      longer[known()] = Math.floorMod(31 * id.hashCode() + generated, 1 << 17);
      this.tokens = longer;
    }
  }

  boolean done() {
    return generated == outputTokens;
  }

  ServeResult.Served served(long originNanos, long nanos) {
    long arrived = originNanos + arrivalNanos;
    return new ServeResult.Served(
        id,
        promptTokens,
        hbmTokens,
        externalTokens,
        preemptions,
        firstTokenNanos - arrived,
        nanos - arrived);
  }
}

package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.ADDED;
import static ucm.server.protocol.Wire.As.HANDLE;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import ucm.pipeline.hash.PromptVariant;

/**
 * LOOKUP: a prompt, or what was added to it.
 *
 * @param handle the client's number for the request
 * @param requestId its name
 * @param computedTokens tokens on the device already
 * @param promptTokens how many of all tokens are the prompt's
 * @param maxOutputTokens most tokens to generate
 * @param variants texts that change the ids of all blocks
 * @param firstIndex index of the first of the tokens
 * @param tokens those that were not sent before
 * @param inputs texts that change the ids of the blocks they touch, and of those after them
 */
// Packed on purpose: thousands of numbers are no objects. These records are not compared.
@SuppressWarnings("ArrayRecordComponent")
public record LookupMessage(
    @Wire(HANDLE) int handle,
    String requestId,
    int computedTokens,
    int promptTokens,
    int maxOutputTokens,
    List<String> variants,
    int firstIndex,
    int[] tokens,
    @Wire(ADDED) List<PlacedInput> inputs) {

  /**
   * An image or the like.
   *
   * @param id its name
   * @param from the first of its tokens, counted from the beginning of the prompt
   * @param to the token after its last one
   */
  public record PlacedInput(String id, int from, int to) {}

  /**
   * Writes and reads what a look-up and a step send: until something has, that takes many milliseconds of the
   * first of them. An engine has other things to do between its opening and that.
   */
  public static void rehearse() throws ProtocolException {
    FrameWriter all =
        new FrameWriter(0, 0)
            .record(new LookupMessage(0, "", 0, 0, 0, List.of(""), 0, new int[1], List.of()))
            .record(FoundMessage.nothing(0, 0, 0, 0))
            .record(new PlanMessage(0, List.of(), List.of(), List.of(), List.of()))
            .record(new PlanMessage.PlannedMessage(0, List.of(), List.of()));
    FrameReader read = new FrameReader(all.end().position(FrameWriter.HEADER_BYTES));
    LookupMessage _ = read.record(LookupMessage.class);
    FoundMessage _ = read.record(FoundMessage.class);
    PlanMessage _ = read.record(PlanMessage.class);
    PlanMessage.PlannedMessage _ = read.record(PlanMessage.PlannedMessage.class);
  }

  /** What besides the tokens names the blocks. */
  public PromptVariant variant() throws ProtocolException {
    String lora = "";
    String salt = "";
    List<PromptVariant.Input> placed = new ArrayList<>();
    for (String variant : variants) {
      int colon = variant.indexOf(':');
      String value = variant.substring(colon + 1);
      switch (variant.substring(0, Math.max(0, colon))) {
        case "lora" -> lora = value;
        // Of a client that does not say where it is.
        case "mm" -> placed.add(input(value, 0, Integer.MAX_VALUE));
        case "salt" -> salt = value;
        default ->
            throw ProtocolException.bad(
                "a variant is lora:NAME, mm:ID or salt:TEXT; found '" + variant + "'");
      }
    }
    for (PlacedInput input : inputs) {
      placed.add(input(input.id, input.from, input.to));
    }
    placed.sort(Comparator.comparingInt(PromptVariant.Input::from));
    return new PromptVariant(lora, placed, salt);
  }

  private static PromptVariant.Input input(String id, int from, int to) throws ProtocolException {
    try {
      return new PromptVariant.Input(id, from, to);
    } catch (IllegalArgumentException e) {
      throw ProtocolException.bad(String.valueOf(e.getMessage()));
    }
  }

  /**
   * FOUND: what of a prompt can be loaded.
   *
   * @param handle the client's number for the request
   * @param tokens that can be loaded beyond those computed
   * @param hold number of the hold, 0 without one
   * @param generation of the slots
   * @param slots one for each block that is held
   * @param promptBlocks full blocks of the prompt
   * @param foundBlocks those found outside of the device
   * @param parts of a hybrid model, for each group what the next of the slots hold; else none
   */
  public record FoundMessage(
      @Wire(HANDLE) int handle,
      int tokens,
      long hold,
      @Wire(HANDLE) int generation,
      int[] slots,
      int promptBlocks,
      int foundBlocks,
      @Wire(ADDED) List<Part> parts) {

    /**
     * Blocks of a group.
     *
     * @param first the first of them
     * @param count how many; each has a slot
     */
    public record Part(int first, int count) {}

    private static final int[] NO_SLOTS = {};

    /** That nothing can be loaded. */
    public static FoundMessage nothing(
        int handle, int generation, int promptBlocks, int foundBlocks) {
      return new FoundMessage(
          handle, 0, 0, generation, NO_SLOTS, promptBlocks, foundBlocks, List.of());
    }
  }
}

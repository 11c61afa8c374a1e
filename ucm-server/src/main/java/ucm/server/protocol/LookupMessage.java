package ucm.server.protocol;

import static ucm.server.protocol.Wire.As.HANDLE;

import java.util.ArrayList;
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
 * @param variants texts that change the blocks' ids
 * @param firstIndex index of the first of the tokens
 * @param tokens those that were not sent before
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
    int[] tokens) {

  /** The texts of a variant. */
  public static List<String> variants(PromptVariant of) {
    List<String> variants = new ArrayList<>();
    if (!of.loraName().isEmpty()) {
      variants.add("lora:" + of.loraName());
    }
    of.multimodalHashes().forEach(hash -> variants.add("mm:" + hash));
    if (!of.cacheSalt().isEmpty()) {
      variants.add("salt:" + of.cacheSalt());
    }
    return variants;
  }

  /**
   * What besides the tokens names the blocks.
   *
   * @param layoutText of the engine
   */
  public PromptVariant variant(String layoutText) throws ProtocolException {
    String lora = "";
    String salt = "";
    List<String> others = new ArrayList<>();
    if (!layoutText.isEmpty()) {
      others.add("layout:" + layoutText);
    }
    for (String variant : variants) {
      int colon = variant.indexOf(':');
      String value = variant.substring(colon + 1);
      switch (variant.substring(0, Math.max(0, colon))) {
        case "lora" -> lora = value;
        case "mm" -> others.add(value);
        case "salt" -> salt = value;
        default ->
            throw ProtocolException.bad(
                "a variant is lora:NAME, mm:ID or salt:TEXT; found '" + variant + "'");
      }
    }
    return new PromptVariant(lora, others, salt);
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
   */
  public record FoundMessage(
      @Wire(HANDLE) int handle,
      int tokens,
      long hold,
      @Wire(HANDLE) int generation,
      int[] slots,
      int promptBlocks,
      int foundBlocks) {

    private static final int[] NO_SLOTS = {};

    /** That nothing can be loaded. */
    public static FoundMessage nothing(
        int handle, int generation, int promptBlocks, int foundBlocks) {
      return new FoundMessage(handle, 0, 0, generation, NO_SLOTS, promptBlocks, foundBlocks);
    }
  }
}

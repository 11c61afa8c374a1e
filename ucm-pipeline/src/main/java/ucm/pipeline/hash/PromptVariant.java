package ucm.pipeline.hash;

import java.util.List;

/**
 * What changes the KV cache of a prompt without changing its tokens. Prompts of different variants
 * share no blocks.
 *
 * <p>The original's ids know nothing of these; here they are part of what is hashed, so that such
 * requests can be served and never get each other's blocks. A plain prompt has the original's ids.
 *
 * @param loraName the adapter applied to the model; empty without one
 * @param multimodalHashes what names the images, sounds and so on in the prompt, in their order
 * @param cacheSalt keeps tenants apart; empty without one
 */
public record PromptVariant(String loraName, List<String> multimodalHashes, String cacheSalt) {

  public static final PromptVariant NONE = new PromptVariant("", List.of(), "");

  public PromptVariant {
    multimodalHashes = List.copyOf(multimodalHashes);
  }

  /** A prompt for a LoRA adapter. */
  public static PromptVariant lora(String name) {
    return new PromptVariant(name, List.of(), "");
  }

  /**
   * What is hashed after the model's name: {@code ;lora:<length>:<name>}, {@code
   * ;mm:<length>:<hash>} for each, {@code ;salt:<length>:<salt>}, without those that are empty. The
   * lengths keep different variants from having one text.
   */
  public String text() {
    if (equals(NONE)) {
      return "";
    }
    StringBuilder text = new StringBuilder();
    append(text, "lora", loraName);
    for (String hash : multimodalHashes) {
      append(text, "mm", hash);
    }
    append(text, "salt", cacheSalt);
    return text.toString();
  }

  private static void append(StringBuilder text, String what, String value) {
    if (!value.isEmpty()) {
      text.append(';').append(what).append(':').append(value.length()).append(':').append(value);
    }
  }
}

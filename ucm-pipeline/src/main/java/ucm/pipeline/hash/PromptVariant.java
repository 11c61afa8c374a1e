package ucm.pipeline.hash;

import java.util.ArrayList;
import java.util.List;

/**
 * What changes the KV cache of a prompt without changing its tokens. Prompts of different variants
 * share no blocks, but those before the first input in which they differ.
 *
 * <p>The original's ids know nothing of these; here they are part of what is hashed, so that such
 * requests can be served and never get each other's blocks. A plain prompt has the original's ids.
 *
 * @param lora tells the adapter applied to the model from any other, by what is in it: a name is not
 *     enough, as another adapter may get it later; empty without one
 * @param inputs images, sounds and so on, by where they begin
 * @param cacheSalt keeps tenants apart; empty without one
 * @param generation tells blocks from those that an engine has disowned; set by the connector
 */
public record PromptVariant(String lora, List<Input> inputs, String cacheSalt, String generation) {

  public static final PromptVariant NONE = new PromptVariant("", List.of(), "");

  /**
   * An image, a sound or the like, in place of some tokens of a prompt. It names the blocks in which
   * these are, and with them all later ones.
   *
   * @param hash tells it from any other, also as it was prepared for the model
   * @param from the first of its tokens, counted from the beginning of the prompt
   * @param to the token after its last one
   */
  public record Input(String hash, int from, int to) {

    public Input {
      if (hash.isEmpty() || to <= from) {
        throw new IllegalArgumentException(
            "an input has a hash and takes tokens; found '%s' from %s to %s"
                .formatted(hash, from, to));
      }
    }
  }

  public PromptVariant {
    inputs = List.copyOf(inputs);
    for (int i = 1; i < inputs.size(); i++) {
      if (inputs.get(i).from < inputs.get(i - 1).from) {
        throw new IllegalArgumentException(
            "inputs come in the order in which they begin; found %s before %s"
                .formatted(inputs.get(i - 1), inputs.get(i)));
      }
    }
  }

  /** A variant of what an engine computes with the weights it was started with. */
  public PromptVariant(String lora, List<Input> inputs, String cacheSalt) {
    this(lora, inputs, cacheSalt, "");
  }

  /** A prompt for a LoRA adapter. */
  public static PromptVariant lora(String lora) {
    return new PromptVariant(lora, List.of(), "");
  }

  /** The variant of what follows the first tokens of a prompt, counted from there. */
  public PromptVariant after(int tokens) {
    List<Input> moved = new ArrayList<>();
    for (Input input : inputs) {
      if (input.to > tokens) {
        moved.add(new Input(input.hash, input.from - tokens, input.to - tokens));
      }
    }
    return new PromptVariant(lora, moved, cacheSalt, generation);
  }

  /** The same in another generation. */
  public PromptVariant inGeneration(String other) {
    return other.equals(generation) ? this : new PromptVariant(lora, inputs, cacheSalt, other);
  }

  /**
   * What is hashed after the model's name, in every block: {@code ;lora:<length>:<text>}, {@code
   * ;salt:<length>:<salt>} and {@code ;generation:<length>:<text>}, without those that are empty. The lengths keep different variants from
   * having one text.
   */
  public String text() {
    StringBuilder text = new StringBuilder();
    append(text, "lora", lora);
    append(text, "salt", cacheSalt);
    append(text, "generation", generation);
    return text.toString();
  }

  /**
   * What is hashed after that in a block that an input touches: {@code ;mm:<length>:<hash>@<first
   * token, counted from that of the block>} for each; empty in other blocks.
   *
   * @param from first token of the block
   * @param to the token after its last one
   */
  public String text(int from, int to) {
    if (inputs.isEmpty()) {
      return "";
    }
    StringBuilder text = new StringBuilder();
    for (Input input : inputs) {
      if (input.from < to && input.to > from) {
        append(text, "mm", input.hash);
        text.append('@').append(input.from - from);
      }
    }
    return text.toString();
  }

  private static void append(StringBuilder text, String what, String value) {
    if (!value.isEmpty()) {
      text.append(';').append(what).append(':').append(value.length()).append(':').append(value);
    }
  }
}

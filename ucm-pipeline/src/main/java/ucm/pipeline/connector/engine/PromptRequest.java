package ucm.pipeline.connector.engine;

import ucm.pipeline.hash.PromptVariant;

/**
 * A request as the scheduler side sees it.
 *
 * @param id unique among the requests that are not finished
 * @param tokens all tokens known now: the prompt and, for a request that was preempted, what was
 *     generated; not copied, and not changed by the caller until the request is finished or asked
 *     about with another array
 * @param promptTokens how many of them are the prompt's
 * @param maxOutputTokens most tokens to generate; goes into traces
 * @param variant what else the KV cache depends on
 */
// Packed on purpose: thousands of numbers are no objects. These records are never compared.
@SuppressWarnings("ArrayRecordComponent")
public record PromptRequest(
    String id, int[] tokens, int promptTokens, int maxOutputTokens, PromptVariant variant) {

  public PromptRequest {
    if (promptTokens < 0 || promptTokens > tokens.length) {
      throw new IllegalArgumentException(
          "request %s: of %s tokens cannot be %s the prompt's"
              .formatted(id, tokens.length, promptTokens));
    }
  }

  /** A request of which all tokens are the prompt, without a variant. */
  public static PromptRequest of(String id, int[] tokens, int maxOutputTokens) {
    return new PromptRequest(id, tokens, tokens.length, maxOutputTokens, PromptVariant.NONE);
  }
}

package ucm.lite.trace;

/**
 * The trace formats the reader knows. It tells them apart by the content of each line, never by the
 * name of a file.
 */
public enum TraceFormat {
  /**
   * JSON lines as published with the Mooncake paper (Qin et al., FAST'25): {@code timestamp} in
   * milliseconds, {@code input_length}, {@code output_length}, {@code hash_ids}; 512 tokens a
   * block, the last block may be partial.
   */
  MOONCAKE("Mooncake", 512),
  /**
   * JSON lines of the Qwen-Bailian traces (Wang et al., ATC'25): as Mooncake, with {@code chat_id},
   * {@code parent_chat_id}, {@code type} and {@code turn}; {@code timestamp} in seconds; 16 tokens
   * a block.
   */
  QWEN_BAILIAN("Qwen-Bailian", 16),
  /**
   * Lines of a UCM log ({@code timestamp: ..., ucm_block_ids: [...]} and {@code UCMTrace: ...,
   * block_hashes: [...]}), or the same as JSON lines with {@code hash_ids} of 32 hex digits; {@code
   * timestamp} in seconds; only full blocks, whose size a {@code
   * UCMTraceMeta:} line names.
   */
  UCM("UCM", 128);

  private final String title;
  private final int blockTokens;

  TraceFormat(String title, int blockTokens) {
    this.title = title;
    this.blockTokens = blockTokens;
  }

  /** The name for people: {@code Qwen-Bailian}, for example. */
  public String title() {
    return title;
  }

  /** Tokens a block where the trace does not say it. */
  public int defaultBlockTokens() {
    return blockTokens;
  }
}

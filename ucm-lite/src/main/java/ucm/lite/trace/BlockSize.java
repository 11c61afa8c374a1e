package ucm.lite.trace;

/**
 * Sees to it that one reading has one format and one block size: ids of two formats, or of blocks
 * of two sizes, cannot be compared, and a statistic over both would be wrong without a sign of it.
 *
 * <p>A trace that never named its block size gets the default of its format (for a UCM log 128, the
 * original's), or, where the first request contradicts that, the power of two that fits it, which
 * is said. A trace of which most requests contradict what was taken is refused: its statistics
 * would be of blocks that it does not have.
 */
final class BlockSize {
  private static final int FEWEST_TOKENS = 16;

  private final int chosen;
  private final ProblemLog problems;
  private TraceFormat format = TraceFormat.MOONCAKE;
  private String formatSeenAt = "";
  private int tokens;
  private String tokensFrom = "";
  private boolean isSaid;
  private long fitting;
  private long contradicting;

  BlockSize(int chosen, ProblemLog problems) {
    this.chosen = chosen;
    this.problems = problems;
  }

  /** Takes note of what a UCMTraceMeta line says. */
  void announce(int announced, String input, long line) {
    sameFormat(TraceFormat.UCM, input, line);
    if (chosen > 0) {
      return;
    }
    if (tokens > 0 && tokens != announced) {
      throw new TraceException(
          String.format(
              "%s says %s tokens a block, but it was %s before (%s): read traces of two block sizes"
                  + " one by one, or state the block size if one of them is a guess",
              at(input, line), announced, tokens, tokensFrom));
    }
    tokens = announced;
    isSaid = true;
    tokensFrom = "UCMTraceMeta at " + at(input, line);
  }

  /**
   * Admits a record and returns its tokens a block; warns when its blocks do not fit its length.
   */
  int admit(RecordDraft draft, String input, long line) {
    sameFormat(draft.format, input, line);
    int blocks = draft.blockCount();
    if (blocks == 0 && draft.format == TraceFormat.UCM && tokens == 0 && chosen == 0) {
      return draft.format.defaultBlockTokens();
    }
    if (tokens == 0) {
      decide(draft, input, line);
    }
    int full = draft.inputTokens / tokens;
    int all = full + (draft.inputTokens % tokens == 0 ? 0 : 1);
    if (fits(blocks, draft.inputTokens, tokens)) {
      fitting++;
    } else {
      contradicting++;
      problems.warning(
          input,
          line,
          TraceProblem.plural(blocks, "block id") + " for input_length " + draft.inputTokens,
          (full == all ? "" + full : full + " or " + all)
              + " blocks of "
              + TraceProblem.plural(tokens, "token"));
    }
    return tokens;
  }

  private void decide(RecordDraft draft, String input, long line) {
    if (chosen > 0) {
      tokens = chosen;
      isSaid = true;
      tokensFrom = "as asked for";
      return;
    }
    boolean isUcm = draft.format == TraceFormat.UCM;
    int blocks = draft.blockCount();
    int usual = draft.format.defaultBlockTokens();
    tokens = fitting(draft, usual);
    if (tokens == usual && !isUcm) {
      tokensFrom = "the default of the format";
      return;
    }
    tokensFrom = "a guess from the request at " + at(input, line);
    problems.warning(
        input,
        line,
        (isUcm
                ? "a record before any UCMTraceMeta line"
                : TraceProblem.plural(blocks, "block id")
                    + " for input_length "
                    + draft.inputTokens)
            + ", taken as "
            + tokens
            + " tokens a block",
        "the block size to be named by the trace, or stated");
  }

  /** The size of a format, or, where a record contradicts that, a power of two that fits it. */
  private static int fitting(RecordDraft draft, int usual) {
    int blocks = draft.blockCount();
    int tokens = draft.inputTokens;
    // UCM's logs name full blocks only.
    boolean fullOnly = draft.format == TraceFormat.UCM;
    if (blocks == 0 || (fullOnly ? tokens / usual == blocks : fits(blocks, tokens, usual))) {
      return usual;
    }
    int lower = Integer.highestOneBit(tokens / blocks);
    if (lower > 0 && tokens / lower == blocks) {
      return lower;
    }
    // The larger one where the last block is a partial one; in smaller blocks no engine keeps KV.
    for (int size : new int[] {lower, 2 * lower}) {
      if (!fullOnly && size >= FEWEST_TOKENS && fits(blocks, tokens, size)) {
        return size;
      }
    }
    return usual;
  }

  private static boolean fits(int blocks, int inputTokens, int blockTokens) {
    int full = inputTokens / blockTokens;
    return blocks == full || (blocks == full + 1 && inputTokens % blockTokens != 0);
  }

  /**
   * Refuses a trace that was read with a size which is not that of its blocks.
   *
   * @throws TraceException when most of its requests contradict it
   */
  void check() {
    if (!isSaid && contradicting > fitting) {
      throw new TraceException(
          String.format(
              "%s of %s requests do not have the blocks of %s tokens that were taken (%s): state"
                  + " the block size (--block-tokens)",
              contradicting, contradicting + fitting, tokens, tokensFrom));
    }
  }

  private void sameFormat(TraceFormat seen, String input, long line) {
    if (formatSeenAt.isEmpty()) {
      format = seen;
      formatSeenAt = at(input, line);
    } else if (format != seen) {
      throw new TraceException(
          String.format(
              "%s is a line of a %s trace (%s tokens a block unless it says otherwise), but %s is"
                  + " one of a %s trace (%s): their block ids cannot be compared; read the traces"
                  + " one by one",
              at(input, line),
              seen.title(),
              seen.defaultBlockTokens(),
              formatSeenAt,
              format.title(),
              format.defaultBlockTokens()));
    }
  }

  TraceFormat format() {
    return format;
  }

  private static String at(String input, long line) {
    return input + ":" + line;
  }
}

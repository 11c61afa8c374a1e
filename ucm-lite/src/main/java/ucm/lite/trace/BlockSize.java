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
  private final int chosen;
  private final ProblemLog problems;
  private TraceFormat format = TraceFormat.MOONCAKE;
  private String formatSeenAt = "";
  private int tokens;
  private String tokensFrom = "";
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
      tokensFrom = "as asked for";
      return;
    }
    tokens = draft.format.defaultBlockTokens();
    tokensFrom = "the default of the format";
    int blocks = draft.blockCount();
    int guess =
        blocks == 0 || fits(blocks, draft.inputTokens, tokens)
            ? 0
            : Integer.highestOneBit(draft.inputTokens / blocks);
    if (guess == 0 && draft.format == TraceFormat.UCM) {
      guess = tokens;
    }
    // Of sizes between two powers of two, the upper one may be the one that fits a last, partial
    // block.
    for (int size : new int[] {guess, 2 * guess}) {
      if (size > 0 && fits(blocks, draft.inputTokens, size)) {
        tokens = size;
        tokensFrom = "a guess from the request at " + at(input, line);
        problems.warning(
            input,
            line,
            (draft.format == TraceFormat.UCM
                    ? "a record before any UCMTraceMeta line"
                    : TraceProblem.plural(blocks, "block id")
                        + " for input_length "
                        + draft.inputTokens)
                + ", taken as "
                + tokens
                + " tokens a block",
            "the block size to be named by the trace, or stated");
        return;
      }
    }
  }

  /** Whether a prompt has so many blocks of a size; UCM's logs name full ones only. */
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
    if (chosen == 0 && contradicting > fitting) {
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

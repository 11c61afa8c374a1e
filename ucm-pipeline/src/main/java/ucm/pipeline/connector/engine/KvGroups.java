package ucm.pipeline.connector.engine;

import java.util.List;
import ucm.api.BlockIds;
import ucm.pipeline.hash.BlockHasher;

/**
 * The groups of a hybrid model's KV cache: layers in which a request has blocks of its own, each group with
 * a rule of which of them the tokens to come look at. What ends at a block can be loaded when each group has
 * all that its rule wants there. Immutable.
 *
 * <p>A block of group 0 has the id of the prompt's block that it ends with; other groups derive theirs.
 *
 * @param blockTokens tokens of a block by which prompts are named
 * @param all the groups; none for a model all of whose layers keep every block of a request together
 */
public record KvGroups(int blockTokens, List<Group> all) {

  /** A model all of whose layers keep every block of a request together. */
  public static final KvGroups ONE = new KvGroups(1, List.of());

  /** What the tokens to come look at. */
  public enum Kind {
    /** All tokens before them. */
    ALL,
    /** The last tokens before them: those of a window, or the last one where a state stands for all. */
    LAST,
    /** The tokens of the chunk that they are in. */
    CHUNK
  }

  /**
   * A group.
   *
   * @param tokens of a window or chunk; without a meaning for {@link Kind#ALL}
   * @param blockTokens tokens of a block in it, one or more of the prompt's blocks
   * @param bytes of a block in it
   */
  public record Group(Kind kind, int tokens, int blockTokens, long bytes) {

    public Group {
      if (blockTokens < 1
          || bytes < 1
          || (kind != Kind.ALL && tokens < 0)
          || isEmptyChunk(kind, tokens)) {
        throw new IllegalArgumentException(
            "a group has blocks of 1 or more tokens and bytes, and looks at 0 or more tokens;"
                + " found %s tokens, %s bytes, and %s %s"
                    .formatted(blockTokens, bytes, kind, tokens));
      }
    }

    private static boolean isEmptyChunk(Kind kind, int tokens) {
      return kind == Kind.CHUNK && tokens == 0;
    }

    /** The first of its blocks that is needed where so many tokens are to be there. */
    public int firstNeeded(int end) {
      return switch (kind) {
        case ALL -> 0;
        case LAST -> Math.max(0, end - tokens) / blockTokens;
        case CHUNK -> end / tokens * tokens / blockTokens;
      };
    }

    /** Whether one block stands for all tokens before it. */
    public boolean isState() {
      return kind == Kind.LAST && tokens == 1;
    }

    /** How many of its blocks are needed anywhere, at the most; 0 for {@link Kind#ALL}. */
    public int mostNeeded() {
      return kind == Kind.ALL ? 0 : Math.ceilDiv(tokens, blockTokens);
    }
  }

  public KvGroups {
    all = List.copyOf(all);
    for (Group group : all) {
      if (group.blockTokens % blockTokens != 0) {
        throw new IllegalArgumentException(
            "a block of a group is one or more blocks of %s tokens; found one of %s"
                .formatted(blockTokens, group.blockTokens));
      }
    }
  }

  /** Whether there is nothing to tell apart. */
  public boolean isOne() {
    return all.isEmpty();
  }

  /** In how many blocks of the prompt a block of every group ends. */
  public int alignment() {
    int tokens = blockTokens;
    for (Group group : all) {
      tokens = tokens / gcd(tokens, group.blockTokens) * group.blockTokens;
    }
    return tokens / blockTokens;
  }

  private static int gcd(int a, int b) {
    return b == 0 ? a : gcd(b, a % b);
  }

  /**
   * After how many blocks of a prompt what a hit needs is stored again, although no prompt is known to end
   * there: so often that windows and states cost half of what the groups that are kept whole do.
   */
  public int interval() {
    long kept = 0;
    long needed = 0;
    for (Group group : all) {
      if (group.kind == Kind.ALL) {
        kept += group.bytes * blockTokens / group.blockTokens;
      } else {
        needed += group.bytes * group.mostNeeded();
      }
    }
    int step = alignment();
    long blocks = kept == 0 ? 1 : Math.ceilDiv(2 * needed, kept);
    return Math.clamp(Math.ceilDiv(blocks, (long) step) * step, step, Integer.MAX_VALUE / 2);
  }

  /**
   * The ids of a group's blocks.
   *
   * @param parts how many ranks hold parts of a block
   * @param prompt the ids of a prompt's blocks, from its first one on, as rank 0 names them
   * @return as rank 0 names them
   */
  public BlockIds names(BlockHasher hasher, int parts, int group, BlockIds prompt) {
    int each = all.get(group).blockTokens / blockTokens;
    BlockIds last = prompt;
    if (each > 1) {
      long[] words = new long[2 * (prompt.size() / each)];
      for (int i = 0; i < words.length; i += 2) {
        int at = (i / 2 + 1) * each - 1;
        words[i] = prompt.high(at);
        words[i + 1] = prompt.low(at);
      }
      last = BlockIds.wrap(words);
    }
    // No rank has this number.
    return hasher.ofRank(group * parts, last);
  }
}

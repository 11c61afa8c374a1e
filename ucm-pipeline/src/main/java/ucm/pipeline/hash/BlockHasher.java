package ucm.pipeline.hash;

import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;

/**
 * Names the blocks of prompts: equal ids, equal bytes.
 *
 * <p>An id must depend on everything that the KV cache of a block depends on: the model, how it is
 * split over ranks, its data type, all tokens up to the block's end, and the prompt's {@link
 * PromptVariant}. Made by a {@link BlockHashing}. Implementations are immutable and thread-safe.
 */
public interface BlockHasher {

  /**
   * Most tokens a block may have. Above 64 KiB Python cuts a pickle into frames, and the original's
   * ids change their form; a block of this many tokens stays below.
   */
  int MAX_BLOCK_TOKENS = 13_000;

  /**
   * The original's hasher for the blocks of one model.
   *
   * @param model as the engine was given it, for example {@code Qwen/QwQ-32B}
   * @param tpSize how many tensor-parallel ranks share the model, 1 or more
   * @param dtype as PyTorch prints it, for example {@code torch.bfloat16}
   */
  static BlockHasher of(String model, int tpSize, String dtype) {
    return PickleMd5Hasher.of(model, tpSize, dtype);
  }

  /** A hasher for prompts of a variant; {@link PromptVariant#NONE} gives the ids of plain prompts. */
  BlockHasher forVariant(PromptVariant variant);

  /** The ids of the full blocks of a prompt; see {@link #hash(int[], int, int, int, BlockIds)}. */
  default BlockIds hash(int[] tokens, int blockSize) {
    return hash(tokens, 0, tokens.length, blockSize, null);
  }

  /**
   * The ids of the full blocks in a part of a prompt, for rank 0. Tokens after the last full block do
   * not count.
   *
   * @param tokens token ids, 0 or more; the inputs of a variant are where it says in this array
   * @param from first token, inclusive; where a block begins
   * @param to last token, exclusive
   * @param blockSize tokens of a block, 1 to {@link #MAX_BLOCK_TOKENS}
   * @param parent ids of the blocks before {@code from}, of which the last counts; null or empty at
   *     the beginning of a prompt
   * @throws IllegalArgumentException for a token below 0, or a block size out of range
   */
  BlockIds hash(int[] tokens, int from, int to, int blockSize, @Nullable BlockIds parent);

  /**
   * The ids under which a tensor-parallel rank keeps its part of blocks.
   *
   * @param rank 0 or more
   * @param rankZeroIds what {@link #hash} gave
   * @return the same ids for rank 0, as many others for any other rank
   */
  BlockIds ofRank(int rank, BlockIds rankZeroIds);
}

package ucm.pipeline.connector;

import com.carrotsearch.hppc.IntArrayList;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;

/** What the scheduler side remembers of a request until it is finished. */
final class RequestState {

  final String id;

  private int @Nullable [] tokens;
  private PromptVariant variant = PromptVariant.NONE;
  private BlockIds ids = BlockIds.empty();
  private int @Nullable [] tail;
  private final IntArrayList table = new IntArrayList();

  // What the log said of it last.
  private int loggedOnDevice = -1;
  private int loggedFound = -1;

  /** The look-up that it waits for; null when there is none. */
  @Nullable PromptLookup lookup;

  /** Whether it has been looked up before. */
  boolean known;

  /** Whether it is too short to be moved at all. */
  boolean skipped;

  /** Blocks that were on the device at the last look-up. */
  int hbmBlocks;

  /** Tokens beyond those that the engine was offered and has not answered yet; 0 when it has. */
  int offeredTokens;

  /** Blocks that the next step of the request loads: from the first, inclusive, to exclusive. */
  int loadFrom;

  int loadTo;

  RequestState(String id) {
    this.id = id;
  }

  /**
   * The ids of its full blocks; hashed again when it comes with another array of tokens, or another
   * variant.
   */
  // The same array is the same tokens: comparing them would cost what hashing them costs.
  @SuppressWarnings("ReferenceEquality")
  BlockIds ids(PromptRequest request, PromptVariant now, BlockHasher hasher, int blockTokens) {
    if (tokens != request.tokens() || !now.equals(variant)) {
      tokens = request.tokens();
      variant = now;
      ids = hasher.forVariant(variant).hash(request.tokens(), blockTokens);
      tail = null;
    }
    return ids;
  }

  /**
   * Adds the ids of the blocks that generated tokens complete.
   *
   * @param more tokens that follow those known so far
   */
  void generated(int[] more, BlockHasher hasher, int blockTokens) {
    int[] known = tokens;
    if (known == null) {
      return;
    }
    // The tokens after the last full block.
    int[] before =
        tail != null ? tail : Arrays.copyOfRange(known, ids.size() * blockTokens, known.length);
    int[] all = Arrays.copyOf(before, before.length + more.length);
    System.arraycopy(more, 0, all, before.length, more.length);
    PromptVariant rest = variant.after(ids.size() * blockTokens);
    BlockIds added = hasher.forVariant(rest).hash(all, 0, all.length, blockTokens, ids);
    if (!added.isEmpty()) {
      ByteBuffer joined = ByteBuffer.allocate((ids.size() + added.size()) * BlockIds.ID_BYTES);
      ids = BlockIds.ofBytes(joined.put(ids.toBytes()).put(added.toBytes()).array());
    }
    tail = Arrays.copyOfRange(all, added.size() * blockTokens, all.length);
  }

  /** The ids of the last look-up. */
  BlockIds ids() {
    return ids;
  }

  void table(int[] blocks) {
    table.clear();
    append(blocks);
  }

  void append(int[] blocks) {
    table.add(blocks, 0, blocks.length);
  }

  /** The engine's blocks of a part of the table. */
  int[] blocks(int from, int to) {
    if (to > table.size()) {
      throw new IllegalStateException(
          ("request %s: a step needs %s blocks and the request's table has %s: hand in all of its"
                  + " blocks with allocated() or plan()")
              .formatted(id, to, table.size()));
    }
    return Arrays.copyOfRange(table.buffer, from, to);
  }

  /** Whether a look-up found something else than the one before it. */
  boolean notices(int onDevice, int found) {
    boolean news = loggedOnDevice != onDevice || loggedFound != found;
    loggedOnDevice = onDevice;
    loggedFound = found;
    return news;
  }

  /** Forgets what was to be loaded, for a new look-up. */
  void forgetLoad() {
    offeredTokens = 0;
    loadFrom = 0;
    loadTo = 0;
  }
}

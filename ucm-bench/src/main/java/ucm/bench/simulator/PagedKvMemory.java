package ucm.bench.simulator;

import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;

/**
 * Which blocks of the engine's KV memory are whose. Blocks are given out one by one as requests grow.
 * With a prefix cache, a block that is not used any more keeps its content until its room is needed,
 * the one that was given back first going first, and serves requests that begin the same way. Used by one
 * thread.
 */
final class PagedKvMemory {

  private final int blockTokens;
  private final boolean prefixCache;
  private final int[] users;
  private final @Nullable BlockIds[] names;
  private final Map<BlockIds, Integer> cached = new HashMap<>();
  private final ArrayDeque<Integer> empty = new ArrayDeque<>();
  private final LinkedHashSet<Integer> idle = new LinkedHashSet<>();

  PagedKvMemory(int blocks, int blockTokens, boolean prefixCache) {
    this.blockTokens = blockTokens;
    this.prefixCache = prefixCache;
    this.users = new int[blocks];
    this.names = new @Nullable BlockIds[blocks];
    for (int block = 0; block < blocks; block++) {
      empty.add(block);
    }
  }

  int blockTokens() {
    return blockTokens;
  }

  int blocks() {
    return users.length;
  }

  /** Unused blocks, those with cached content included. */
  int free() {
    return empty.size() + idle.size();
  }

  /** How many of a prompt's first blocks are in memory; never all, as a token must be computed. */
  int cachedBlocks(ServeRequest request) {
    if (!prefixCache) {
      return 0;
    }
    BlockIds ids = request.ids();
    int most = Math.min(ids.size(), (request.known() - 1) / blockTokens);
    int found = 0;
    while (found < most && cached.containsKey(name(ids, found))) {
      found++;
    }
    return found;
  }

  /**
   * Gives a request its first blocks: those that {@link #cachedBlocks} has just said, and room for some
   * tokens in all. When there is not enough, nothing has changed.
   */
  boolean admit(ServeRequest request, int cachedBlocks, int tokens) {
    for (int i = 0; i < cachedBlocks; i++) {
      int block = Objects.requireNonNull(cached.get(name(request.ids(), i)));
      if (users[block]++ == 0) {
        idle.remove(block);
      }
      request.table().add(block);
    }
    if (grow(request, tokens)) {
      return true;
    }
    release(request);
    return false;
  }

  /** Gives a request room for some tokens in all; all of it or nothing. */
  boolean grow(ServeRequest request, int tokens) {
    int needed = Math.ceilDiv(tokens, blockTokens) - request.table().size();
    if (needed > free()) {
      return false;
    }
    for (int i = 0; i < needed; i++) {
      int block = take();
      users[block] = 1;
      request.table().add(block);
    }
    return true;
  }

  private int take() {
    Integer unused = empty.poll();
    if (unused != null) {
      return unused;
    }
    int block = idle.removeFirst();
    cached.remove(Objects.requireNonNull(names[block]));
    names[block] = null;
    return block;
  }

  /** Says that the first blocks of a request hold what their names say. */
  void remember(ServeRequest request, int blocks) {
    if (!prefixCache) {
      return;
    }
    for (int i = 0; i < Math.min(blocks, request.ids().size()); i++) {
      int block = request.table().get(i);
      if (names[block] == null) {
        BlockIds name = name(request.ids(), i);
        if (cached.putIfAbsent(name, block) == null) {
          names[block] = name;
        }
      }
    }
  }

  /** Takes all blocks of a request back; the end of a prompt goes before its beginning. */
  void release(ServeRequest request) {
    while (!request.table().isEmpty()) {
      int block = request.table().removeLast();
      if (--users[block] > 0) {
        continue;
      }
      if (names[block] == null) {
        empty.add(block);
      } else {
        idle.add(block);
      }
    }
  }

  private static BlockIds name(BlockIds ids, int i) {
    return ids.slice(i, i + 1);
  }
}

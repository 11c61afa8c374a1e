package ucm.pipeline.connector;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.Store;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvGroups.Group;
import ucm.pipeline.connector.engine.KvGroups.Kind;
import ucm.pipeline.hash.BlockHasher;

/**
 * How far a prompt can be loaded: groups that keep every block say how far at the most, and from there it
 * is asked backwards where the others of a hybrid model have what is needed. Used once, by one thread.
 */
final class GroupLookup {

  // So many blocks are asked for at once where nothing says how many it will be.
  private static final int STEP = 64;

  private final Store store;
  private final BlockHasher hasher;
  private final int parts;
  private final KvGroups groups;
  private final BlockIds prompt;
  private final int from;
  private final Map<Integer, Presence> known = new HashMap<>();

  /** Which blocks of a part are there; it is known from {@code asked} on. */
  private final class Presence {

    private final BlockIds ids;
    private final BitSet there = new BitSet();
    private int asked;

    Presence(BlockIds ids) {
      this.ids = ids;
      asked = ids.size();
    }

    /** The last block of some that is not there; -1 when all are. */
    int lastMissing(int first, int end) {
      if (first < asked) {
        int start = Math.max(0, Math.min(first, asked - STEP));
        BitSet found = store.lookup(ids.slice(start, asked));
        for (int i = found.nextSetBit(0); i >= 0; i = found.nextSetBit(i + 1)) {
          there.set(start + i);
        }
        asked = start;
      }
      int missing = there.previousClearBit(end - 1);
      return missing >= first ? missing : -1;
    }
  }

  /**
   * Asks nothing yet.
   *
   * @param prompt all of its blocks
   * @param from blocks before this one are on the device, in all groups
   */
  GroupLookup(
      Store store, BlockHasher hasher, int parts, KvGroups groups, BlockIds prompt, int from) {
    this.store = store;
    this.hasher = hasher;
    this.parts = parts;
    this.groups = groups;
    this.prompt = prompt;
    this.from = from;
  }

  /** How far the groups that keep every block are there without a gap. */
  int stored() {
    int end = prompt.size();
    for (int i = 0; i < groups.all().size(); i++) {
      Group group = groups.all().get(i);
      if (group.kind() != Kind.ALL) {
        continue;
      }
      int each = group.blockTokens() / groups.blockTokens();
      BlockIds names = groups.names(hasher, parts, i, prompt);
      for (int rank = 0; rank < parts; rank++) {
        BlockIds ids = hasher.ofRank(rank, names);
        store.notePrompt(ids);
        if (from < end) {
          int run = store.lookupPrefix(ids.slice(from / each, end / each)) + 1;
          end = (from / each + run) * each;
        }
      }
    }
    return Math.max(from, end);
  }

  /**
   * Where a hit ends that is whole over all groups.
   *
   * @param most it ends here at the latest
   * @return {@code from} when there is none
   */
  int end(int most) {
    int step = groups.alignment();
    int end = from % step == 0 ? most / step * step : from;
    while (end > from) {
      int missing = missing(end);
      if (missing < 0) {
        return end;
      }
      // Whatever ends behind it would need it, too.
      end = missing / step * step;
    }
    return from;
  }

  /** The prompt's block with which a block begins that is needed and not there; -1 when all are. */
  private int missing(int end) {
    for (int i = 0; i < groups.all().size(); i++) {
      Group group = groups.all().get(i);
      if (group.kind() == Kind.ALL) {
        continue;
      }
      int each = group.blockTokens() / groups.blockTokens();
      int needed = Math.max(from / each, group.firstNeeded(end * groups.blockTokens()));
      for (int rank = 0; rank < parts && needed < end / each; rank++) {
        int missing = presence(i, rank).lastMissing(needed, end / each);
        if (missing >= 0) {
          return missing * each;
        }
      }
    }
    return -1;
  }

  private Presence presence(int group, int rank) {
    return known.computeIfAbsent(
        group * parts + rank,
        key -> new Presence(hasher.ofRank(rank, groups.names(hasher, parts, group, prompt))));
  }
}

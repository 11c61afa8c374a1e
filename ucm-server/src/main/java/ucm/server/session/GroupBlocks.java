package ucm.server.session;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvGroups.Group;
import ucm.pipeline.connector.engine.KvGroups.Kind;
import ucm.pipeline.hash.BlockHasher;
import ucm.server.protocol.LookupMessage.FoundMessage;

/**
 * Which blocks of a hybrid model's groups a hit wants, and which a step saves. Blocks of groups that keep
 * all are saved as they are completed. What only the tokens right after them look at is saved where a hit
 * can be expected to end: where the prompt ends; where it goes on otherwise than prompts before it, as the
 * next one may part from them there as well; at intervals, for prompts that part from it anywhere; behind each
 * block of generated tokens; and, for states, where a step ends, as engines have them nowhere else. Immutable and thread-safe, but for the requests.
 */
final class GroupBlocks {

  /**
   * Blocks of a group that a step saves together.
   *
   * @param group number of the group
   * @param first the first of them
   * @param end the one after the last
   */
  record Wanted(int group, int first, int end) {}

  private final KvGroups groups;
  private final BlockHasher hasher;
  private final int parts;
  private final int interval;
  private final int most;

  /**
   * Those of an engine.
   *
   * @param parts how many ranks hold parts of a block
   * @param slots how many there are
   */
  GroupBlocks(KvGroups groups, BlockHasher hasher, int parts, int slots) {
    this.groups = groups;
    this.hasher = hasher;
    this.parts = parts;
    interval = groups.isOne() ? 1 : groups.interval();
    most = slots;
  }

  boolean isOne() {
    return groups.isOne();
  }

  /** How many blocks of a prompt can be loaded with so many slots, at the most. */
  int mostBlocks(int slots) {
    long left = Math.min(slots, most);
    long each = 0;
    int step = groups.alignment();
    for (Group group : groups.all()) {
      int tokens = step * groups.blockTokens();
      if (group.kind() == Kind.ALL) {
        each += tokens / group.blockTokens();
      } else {
        left -= group.mostNeeded();
      }
    }
    if (each == 0) {
      return left < 0 ? 0 : Integer.MAX_VALUE;
    }
    return (int) Math.max(0, left / each) * step;
  }

  /**
   * What a hit wants of each group.
   *
   * @param from blocks of the prompt that are on the device
   * @param end where the hit ends
   */
  List<FoundMessage.Part> wanted(int from, int end) {
    List<FoundMessage.Part> all = new ArrayList<>();
    for (Group group : groups.all()) {
      int each = group.blockTokens() / groups.blockTokens();
      int first = Math.max(from / each, group.firstNeeded(end * groups.blockTokens()));
      all.add(new FoundMessage.Part(first, Math.max(0, end / each - first)));
    }
    return all;
  }

  /** The ids of what a hit wants, group after group. */
  BlockIds ids(List<FoundMessage.Part> wanted, BlockIds prompt) {
    List<BlockIds> all = new ArrayList<>();
    for (int i = 0; i < wanted.size(); i++) {
      FoundMessage.Part part = wanted.get(i);
      all.add(names(i, prompt).slice(part.first(), part.first() + part.count()));
    }
    return joined(all);
  }

  private BlockIds names(int group, BlockIds prompt) {
    return groups.names(hasher, parts, group, prompt);
  }

  private static BlockIds joined(List<BlockIds> all) {
    long[] words = new long[2 * all.stream().mapToInt(BlockIds::size).sum()];
    int at = 0;
    for (BlockIds ids : all) {
      for (int i = 0; i < ids.size(); i++) {
        words[at++] = ids.high(i);
        words[at++] = ids.low(i);
      }
    }
    return BlockIds.wrap(words);
  }

  /** Notes that blocks of a request are in the store. */
  void stored(RequestEntry request, List<FoundMessage.Part> which) {
    for (int i = 0; i < which.size(); i++) {
      int first = which.get(i).first();
      request.saved(i).set(first, first + which.get(i).count());
    }
  }

  /**
   * Notes what a look-up has found in the store.
   *
   * @param blocks so many of the prompt's have what is kept of every block
   */
  void found(RequestEntry request, int blocks) {
    request.storedTo = blocks;
    for (int i = 0; i < groups.all().size(); i++) {
      Group group = groups.all().get(i);
      if (group.kind() == Kind.ALL) {
        request.saved(i).set(0, blocks * groups.blockTokens() / group.blockTokens());
      }
    }
  }

  /**
   * What a step is to save.
   *
   * @param computed blocks of the request that are complete before the step
   * @param complete those after it
   */
  List<Wanted> saves(RequestEntry request, int computed, int complete) {
    List<Wanted> all = new ArrayList<>();
    for (int i = 0; i < groups.all().size(); i++) {
      BitSet wanted = wanted(groups.all().get(i), request, computed, complete);
      wanted.andNot(request.saved(i));
      // The engine has each state or not.
      boolean alone = groups.all().get(i).isState();
      int end;
      for (int first = wanted.nextSetBit(0); first >= 0; first = wanted.nextSetBit(end)) {
        end = alone ? first + 1 : wanted.nextClearBit(first);
        all.add(new Wanted(i, first, end));
      }
    }
    return all;
  }

  private BitSet wanted(Group group, RequestEntry request, int computed, int complete) {
    int each = group.blockTokens() / groups.blockTokens();
    int step = groups.alignment();
    BitSet wanted = new BitSet();
    if (group.kind() == Kind.ALL) {
      wanted.set(computed / each, complete / each);
      return wanted;
    }
    for (int end = (computed / step + 1) * step; end <= complete; end += step) {
      if (isEnd(request, end, step) || (group.isState() && end + step > complete)) {
        wanted.set(group.firstNeeded(end * groups.blockTokens()), end / each);
      }
    }
    return wanted;
  }

  private boolean isEnd(RequestEntry request, int end, int step) {
    int tokens = request.lookedUpTokens;
    int last = tokens / groups.blockTokens() / step * step;
    int before = Math.max(0, tokens - 1) / groups.blockTokens() / step * step;
    return end % interval == 0
        || end == before
        || end >= last
        || end == request.storedTo / step * step;
  }

  /** The ids of blocks that are saved. */
  BlockIds ids(Wanted wanted, BlockIds prompt) {
    return names(wanted.group, prompt).slice(wanted.first, wanted.end);
  }
}

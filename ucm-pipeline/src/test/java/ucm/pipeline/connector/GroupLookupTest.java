package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.KvGroups;
import ucm.pipeline.connector.engine.KvGroups.Group;
import ucm.pipeline.connector.engine.KvGroups.Kind;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.PromptStore;

/** Where hits of hybrid models end, against a search that tries every end. */
final class GroupLookupTest {

  private static final int TOKENS = 4;
  private static final BlockHasher HASHER = BlockHasher.of("m", 2, "d");

  /** Has those blocks alone that it is told to. */
  private static final class Names extends PromptStore {

    private final Set<String> names = new HashSet<>();

    void add(BlockIds ids) {
      for (int i = 0; i < ids.size(); i++) {
        names.add(BlockIds.hex(ids.high(i), ids.low(i)));
      }
    }

    @Override
    public BitSet lookup(BlockIds ids) {
      BitSet found = new BitSet();
      for (int i = 0; i < ids.size(); i++) {
        found.set(i, names.contains(BlockIds.hex(ids.high(i), ids.low(i))));
      }
      return found;
    }
  }

  private static BlockIds prompt(int blocks) {
    int[] tokens = new Random(blocks).ints((long) blocks * TOKENS, 0, 1000).toArray();
    return HASHER.hash(tokens, TOKENS);
  }

  private static KvGroups groups(Group... all) {
    return new KvGroups(TOKENS, List.of(all));
  }

  private static Group all() {
    return new Group(Kind.ALL, 0, TOKENS, 10);
  }

  private static Group last(int tokens) {
    return new Group(Kind.LAST, tokens, TOKENS, 10);
  }

  private static void store(Names store, KvGroups groups, int group, BlockIds prompt, int at) {
    for (int rank = 0; rank < 2; rank++) {
      BlockIds names = HASHER.ofRank(rank, groups.names(HASHER, 2, group, prompt));
      store.add(names.slice(at, at + 1));
    }
  }

  @Test
  void aHitEndsWhereAWindowIsWhole() {
    KvGroups groups = groups(all(), last(7));
    Names store = new Names();
    BlockIds prompt = prompt(10);
    for (int i = 0; i < 8; i++) {
      store(store, groups, 0, prompt, i);
    }
    for (int i : new int[] {2, 3, 5, 6}) {
      store(store, groups, 1, prompt, i);
    }
    GroupLookup lookup = new GroupLookup(store, HASHER, 2, groups, prompt, 0);
    assertThat(lookup.stored()).isEqualTo(8);
    assertThat(lookup.end(8)).isEqualTo(7);
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(6)).isEqualTo(4);
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(3)).isZero();
    // What is on the device is not needed of the store.
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 5).end(6)).isEqualTo(6);
  }

  @Test
  void aPartOfOneRankIsNoHit() {
    KvGroups groups = groups(all(), last(1));
    Names store = new Names();
    BlockIds prompt = prompt(4);
    for (int i = 0; i < 4; i++) {
      store(store, groups, 0, prompt, i);
    }
    store.add(groups.names(HASHER, 2, 1, prompt).slice(3, 4));
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(4)).isZero();
    store(store, groups, 1, prompt, 3);
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(4)).isEqualTo(4);
  }

  @Test
  void nothingOfAChunkIsNeededAtItsBeginning() {
    KvGroups groups = groups(all(), new Group(Kind.CHUNK, 4 * TOKENS, TOKENS, 10));
    Names store = new Names();
    BlockIds prompt = prompt(7);
    for (int i = 0; i < 7; i++) {
      store(store, groups, 0, prompt, i);
    }
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(7)).isEqualTo(4);
    store(store, groups, 1, prompt, 4);
    assertThat(new GroupLookup(store, HASHER, 2, groups, prompt, 0).end(7)).isEqualTo(5);
  }

  @Test
  void groupsHaveNamesOfTheirOwn() {
    KvGroups groups = groups(all(), last(1), last(3), new Group(Kind.LAST, 5, 2 * TOKENS, 10));
    BlockIds prompt = prompt(6);
    Set<String> seen = new HashSet<>();
    int count = 0;
    for (int group = 0; group < 4; group++) {
      for (int rank = 0; rank < 2; rank++) {
        BlockIds ids = HASHER.ofRank(rank, groups.names(HASHER, 2, group, prompt));
        for (int i = 0; i < ids.size(); i++) {
          seen.add(BlockIds.hex(ids.high(i), ids.low(i)));
          count++;
        }
      }
    }
    assertThat(seen).hasSize(count);
    assertThat(count).isEqualTo(2 * (3 * 6 + 3));
    // Those of the group that stands for the prompt are the prompt's.
    assertThat(groups.names(HASHER, 2, 0, prompt)).isEqualTo(prompt);
  }

  @Test
  void whatIsStoredAgainCostsHalfOfWhatIsKeptWhole() {
    // Five of six layers look at 8 blocks.
    Group[] all = {all(), last(31), last(31), last(31), last(31), last(31)};
    assertThat(groups(all).interval()).isEqualTo(80);
    assertThat(groups(all(), new Group(Kind.LAST, 1, 3 * TOKENS, 30)).interval()).isEqualTo(6);
    assertThat(groups(last(31)).interval()).isEqualTo(1);
  }

  @Test
  void theEndIsThatOfASearchThatTriesAll() {
    Random random = new Random(11);
    for (int turn = 0; turn < 3000; turn++) {
      List<Group> all = new ArrayList<>();
      for (int i = random.nextInt(1, 4); i > 0; i--) {
        Kind kind = Kind.values()[random.nextInt(3)];
        all.add(new Group(kind, random.nextInt(1, 30), TOKENS * random.nextInt(1, 3), 10));
      }
      KvGroups groups = new KvGroups(TOKENS, all);
      BlockIds prompt = prompt(random.nextInt(1, 100));
      Names store = new Names();
      List<BitSet> there = new ArrayList<>();
      for (int group = 0; group < all.size(); group++) {
        there.add(new BitSet());
        int count = groups.names(HASHER, 2, group, prompt).size();
        for (int i = 0; i < count; i++) {
          if (random.nextInt(10) > 1) {
            store(store, groups, group, prompt, i);
            there.get(group).set(i);
          }
        }
      }
      int step = groups.alignment();
      int from = random.nextInt(prompt.size() / step + 1) / 2 * step;
      GroupLookup lookup = new GroupLookup(store, HASHER, 2, groups, prompt, from);
      int found = lookup.end(Math.min(lookup.stored(), prompt.size()));
      assertThat(found).isEqualTo(best(groups, there, prompt.size(), from, step));
    }
  }

  private static int best(KvGroups groups, List<BitSet> there, int size, int from, int step) {
    for (int end = size / step * step; end > from; end -= step) {
      boolean whole = true;
      for (int i = 0; i < groups.all().size(); i++) {
        Group group = groups.all().get(i);
        int each = group.blockTokens() / TOKENS;
        int first = Math.max(from / each, group.firstNeeded(end * TOKENS));
        whole &= first >= end / each || there.get(i).nextClearBit(first) >= end / each;
      }
      if (whole) {
        return end;
      }
    }
    return from;
  }
}

package ucm.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static ucm.testkit.OpenStore.bits;
import static ucm.testkit.SampleLayout.ONE_TENSOR;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;

/** The part of the suite about look-ups of whole blocks. */
interface LookupContract extends ContractPart {

  @Test
  default void findsNothingInAnEmptyStore() {
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds unknown = BlockBytes.ids(1, 100);
    store.requireAbsent(unknown);
    store.prefetch(unknown);
    assertThat(store.lookup(unknown).stream()).isEmpty();
  }

  @Test
  default void answersForNoBlocksAtAll() {
    OpenStore store = suite().open(ONE_TENSOR);
    store.requireAbsent(BlockIds.empty());
    store.prefetch(BlockIds.empty());
  }

  @Test
  default void findsEveryBlockButTheHole() {
    suite().needBlocks();
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(2, 100);
    int hole = 41;
    store.keep(ids.slice(0, hole));
    store.keep(ids.slice(hole + 1, 100));
    BitSet expected = bits(0, 100);
    expected.clear(hole);
    BitSet known = store.lookupKnown(ids);
    if (known != null) {
      assertThat(known.stream()).as("known, and stored").allMatch(expected::get);
    }
    assertThat(store.lookup(ids)).as("99 of 100, not the prefix alone").isEqualTo(expected);
    assertThat(store.lookupPrefix(ids)).isEqualTo(hole - 1);
    store.prefetch(ids);
    assertThat(store.lookup(ids)).as("after prefetch").isEqualTo(expected);
  }

  @Test
  default void saysTheIndexOfTheLastBlockOfTheRun() {
    suite().needBlocks();
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(3, 12);
    store.keep(ids.slice(0, 8));
    assertThat(store.lookupPrefix(ids)).isEqualTo(7);
    assertThat(store.lookupPrefix(ids.slice(0, 8))).as("all are there").isEqualTo(7);
    assertThat(store.lookupPrefix(ids.slice(0, 1))).as("one that is there").isZero();
    assertThat(store.lookupPrefix(ids.slice(5, 12))).as("from the sixth on").isEqualTo(2);
    assertThat(store.lookupPrefix(ids.slice(8, 12))).as("the first is absent").isEqualTo(-1);
  }

  @Test
  default void answersForEachRepetition() {
    suite().needBlocks();
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds there = BlockBytes.ids(4, 1);
    BlockIds absent = BlockBytes.ids(5, 1);
    store.keep(there);
    BlockIds mixed = BlockIds.ofHex(there.hex(0), absent.hex(0), there.hex(0), there.hex(0));
    BitSet expected = bits(2, 4);
    expected.set(0);
    assertThat(store.lookup(mixed)).isEqualTo(expected);
    assertThat(store.lookupPrefix(mixed)).isZero();
    assertThat(store.lookupPrefix(mixed.slice(2, 4))).isEqualTo(1);
  }

  @Test
  default void comparesAllBitsOfAnId() {
    suite().needBlocks();
    OpenStore store = suite().open(ONE_TENSOR);
    long[] words = new long[2 * 128];
    for (int bit = 0; bit < 128; bit++) {
      words[2 * bit] = bit < 64 ? 1L << bit : 0;
      words[2 * bit + 1] = bit < 64 ? 0 : 1L << (bit - 64);
    }
    BlockIds oneBit = BlockIds.wrap(words);
    BlockIds extremes = BlockIds.wrap(new long[] {0, 0, -1, -1, 0, -1, -1, 0});
    assertThat(store.lookup(extremes).stream()).isEmpty();
    for (int i = 0; i < extremes.size(); i++) {
      store.keep(extremes.slice(i, i + 1));
      assertThat(store.lookup(extremes).cardinality()).as("of the extreme ids").isEqualTo(i + 1);
      assertThat(store.lookup(oneBit).stream()).as("ids of one bit, never dumped").isEmpty();
    }
    store.keep(oneBit.slice(0, 100));
    assertThat(store.lookup(oneBit)).isEqualTo(bits(0, 100));
  }

  @Test
  default void givesTheAnswerAwayForGood() {
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(6, 10);
    if (suite().keepsBlocks()) {
      store.keep(ids.slice(0, 5));
    }
    BitSet first = store.lookup(ids);
    BitSet copy = (BitSet) first.clone();
    first.flip(0, 10);
    assertThat(store.lookup(ids)).as("after the caller changed its own set").isEqualTo(copy);
    BitSet durable = store.durable(ids);
    copy = (BitSet) durable.clone();
    durable.flip(0, 10);
    assertThat(store.durable(ids)).as("after the caller changed its own set").isEqualTo(copy);
  }

  @Test
  default void saysWhetherItCanRemove() {
    OpenStore store = suite().open(ONE_TENSOR);
    assertThat(store.canRemove())
        .as("canRemove() of %s, as the switch removesBlocks() says", store.name())
        .isEqualTo(suite().removesBlocks());
    if (!suite().removesBlocks()) {
      assertThatThrownBy(() -> store.remove(BlockBytes.ids(8, 1)))
          .as("remove of a store that cannot")
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining(store.name());
    }
  }

  @Test
  default void removesTheBlocksItIsToldAndNoOther() {
    assumeTrue(suite().removesBlocks(), "removes no blocks (removesBlocks)");
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(9, 12);
    if (suite().keepsBlocks()) {
      store.keep(ids.slice(0, 10));
    }
    BitSet all = bits(0, 8);
    BlockIds removed = ids.slice(4, 12);
    assertThat(store.remove(removed)).as("gone, or never there").isEqualTo(all);
    assertThat(store.lookup(removed).stream()).as("look-up of what was removed").isEmpty();
    assertThat(store.durable(removed).stream()).as("durable, of what was removed").isEmpty();
    assertThat(store.remove(removed)).as("removed a second time").isEqualTo(all);
    assertThat(store.remove(BlockIds.empty()).stream()).as("remove of no ids").isEmpty();
    if (suite().keepsBlocks()) {
      assertThat(store.lookup(ids).cardinality()).as("blocks that are left").isEqualTo(4);
      store.requireLoads(ids.slice(0, 4));
      store.keep(removed);
      store.requireLoads(ids);
    }
  }

  @Test
  default void removesForTheNextLifeToo() {
    assumeTrue(suite().removesBlocks(), "removes no blocks (removesBlocks)");
    suite().needRestart();
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(10, 6);
    store.keep(ids);
    store.remove(ids.slice(2, 6));
    OpenStore again = suite().reopen(ONE_TENSOR, Map.of());
    assertThat(again.lookup(ids)).as("after a restart").isEqualTo(bits(0, 2));
  }

  @Test
  default void doesNotChangeTheIdsItIsAsked() {
    OpenStore store = suite().open(ONE_TENSOR);
    BlockIds ids = BlockBytes.ids(7, 20);
    byte[] before = ids.toBytes();
    store.lookup(ids);
    store.lookupPrefix(ids);
    store.prefetch(ids);
    store.durable(ids);
    assertThat(Arrays.equals(ids.toBytes(), before))
        .as("the caller's ids are the same after look-ups")
        .isTrue();
  }
}

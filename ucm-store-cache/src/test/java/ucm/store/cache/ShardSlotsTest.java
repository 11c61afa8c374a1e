package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

final class ShardSlotsTest {

  private final SparePool<int[]> arrays = SparePool.ofNumbers();

  @Test
  void arraysGoBackWithTheLastUse() {
    ShardSlots held = of(4, 5, 6);
    held.share(3);
    held.endUse(2);
    assertThat(arrays.count()).isZero();
    assertThat(held.shards).startsWith(4, 5, 6);
    held.endUse(1);
    assertThat(arrays.count()).isEqualTo(2);
  }

  @Test
  void whoLooksAfterTheLastUseFindsNothing() {
    ShardSlots held = of(4);
    held.share(1);
    held.endUse(1);
    assertThatThrownBy(() -> held.slots[0] = 1).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> held.add(5, 1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void moreUsesThanWereSaidAreAnErrorAndGiveNothingBack() {
    ShardSlots held = of(4);
    held.share(1);
    held.endUse(1);
    assertThatThrownBy(() -> held.endUse(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("1 times more");
    assertThat(arrays.count()).isEqualTo(2);
  }

  @Test
  void takesNoArraysWithoutAShard() {
    ShardSlots held = new ShardSlots(arrays, 10);
    held.share(1);
    held.endUse(1);
    assertThat(arrays.count()).isZero();
  }

  @Test
  void rangeIsNeighboursInOrder() {
    assertThat(of(4, 5, 6).isRange(0, 3)).isTrue();
    assertThat(of(9, 4, 5, 7).isRange(1, 3)).isTrue();
    assertThat(of(9, 4, 5, 7).isRange(1, 4)).isFalse();
    assertThat(of(5, 4).isRange(0, 2)).isFalse();
    assertThat(of(4, 4).isRange(0, 2)).isFalse();
    assertThat(of(3, DumpCopy.NOT_COPIED, 5).isRange(0, 3)).isFalse();
    // The first shards of a transfer behind one that was not copied.
    assertThat(of(DumpCopy.NOT_COPIED, 0, 1).isRange(0, 3)).isFalse();
  }

  private ShardSlots of(int... shards) {
    ShardSlots held = new ShardSlots(arrays, shards.length);
    for (int shard : shards) {
      held.add(shard, 100 + shard);
    }
    return held;
  }
}

package ucm.store.cache.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import ucm.api.ShardOutcome;

final class SlotWaitsTest {

  private static final SlotWaiter WAITER =
      new SlotWaiter() {
        @Override
        public void filled(int shard, int slot) {}

        @Override
        public void notFilled(int shard, ShardOutcome outcome, @Nullable Throwable cause) {}
      };

  private final SlotWaits joined = new SlotWaits(4);

  private static List<Integer> indexes(@Nullable SlotWait all) {
    List<Integer> indexes = new ArrayList<>();
    for (SlotWait one = all; one != null; one = one.next()) {
      indexes.add(one.index());
    }
    return indexes;
  }

  private SlotWait taken(int slot) {
    return Objects.requireNonNull(joined.take(slot));
  }

  @Test
  void takesAllWhoWaitForASlotOnce() {
    joined.add(1, WAITER, 10);
    joined.add(1, WAITER, 11);
    joined.add(2, WAITER, 20);
    assertThat(joined.has(1)).isTrue();
    assertThat(joined.has(3)).isFalse();
    assertThat(indexes(joined.take(1))).containsExactlyInAnyOrder(10, 11);
    assertThat(joined.has(1)).isFalse();
    assertThat(joined.take(1)).isNull();
    assertThat(indexes(joined.take(2))).containsExactly(20);
  }

  @Test
  void reusesOnlyWhatWasGivenBack() {
    joined.add(0, WAITER, 1);
    joined.add(0, WAITER, 2);
    SlotWait first = taken(0);
    SlotWait second = Objects.requireNonNull(first.next());
    // While they are told, others come.
    joined.add(1, WAITER, 3);
    SlotWait other = taken(1);
    assertThat(other).isNotIn(first, second);
    joined.giveBack(first);
    assertThatNullPointerException().isThrownBy(first::waiter).withMessageContaining("given back");
    joined.add(2, WAITER, 4);
    joined.add(3, WAITER, 5);
    joined.add(3, WAITER, 6);
    assertThat(List.of(taken(2), Objects.requireNonNull(taken(3).next())))
        .containsExactlyInAnyOrder(first, second);
    assertThat(indexes(other)).containsExactly(3);
  }

  @Test
  void keepsNoMoreThanItMayNeedSoon() {
    int many = 3000;
    for (int i = 0; i < many; i++) {
      joined.add(0, WAITER, i);
    }
    SlotWait all = taken(0);
    assertThat(indexes(all)).hasSize(many);
    joined.giveBack(all);
    for (int i = 0; i < many; i++) {
      joined.add(0, WAITER, i);
    }
    assertThat(indexes(joined.take(0))).hasSize(many).doesNotHaveDuplicates();
  }
}

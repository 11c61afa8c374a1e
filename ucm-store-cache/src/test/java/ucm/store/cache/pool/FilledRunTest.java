package ucm.store.cache.pool;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import ucm.api.ShardOutcome;
import ucm.store.cache.config.CachePolicy;
import ucm.store.cache.pool.SlotPool.Reservation;

/** A run of slots that are filled and released at once, while a task waits for one of them. */
final class FilledRunTest {

  private final List<String> told = new ArrayList<>();

  /** Two blocks fill the pool; a waiter for the first has a third one take the place of the second. */
  @Test
  void slotOfTheRunDoesNotGoToAnotherBlockBeforeAllAreTold() {
    SlotPool pool = new SlotPool(2, 1, CachePolicy.LRU, _ -> {});
    int first = Reservation.number(pool.reserveForDump(1, 1, 0, true));
    int second = Reservation.number(pool.reserveForDump(2, 2, 0, true));
    SlotPool.Waiter evicting =
        new Waiter(pool) {
          @Override
          public void filled(int index, int slot) {
            var _ = pool.reserveForDump(3, 3, 0, true);
            var _ = pool.reserveForLoad(3, 3, 0, new Waiter(pool), 3, true);
            super.filled(index, slot);
          }
        };
    assertThat(Reservation.kind(pool.reserveForLoad(1, 1, 0, evicting, 1, true)))
        .isEqualTo(Reservation.FILLING);
    pool.filled(new int[] {first, second}, 0, 2, true);
    assertThat(told).containsExactly("filled 1");
    assertThat(pool.referenced()).isZero();
  }

  private class Waiter implements SlotPool.Waiter {

    private final SlotPool pool;

    Waiter(SlotPool pool) {
      this.pool = pool;
    }

    @Override
    public void filled(int index, int slot) {
      told.add("filled " + index);
      pool.release(slot);
    }

    @Override
    public void notFilled(int index, ShardOutcome outcome, @Nullable Throwable cause) {
      told.add(outcome + " " + index);
    }
  }
}

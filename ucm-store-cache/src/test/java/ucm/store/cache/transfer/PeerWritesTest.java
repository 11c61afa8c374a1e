package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.BitSet;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.store.cache.pool.SlotDirectory;
import ucm.testkit.BlockBytes;

/** What becomes of blocks that another worker brings, in whatever moment it ends. */
final class PeerWritesTest {

  private static final BlockIds ID = BlockBytes.ids(1, 1);
  private static final long PATIENCE = Duration.ofMinutes(1).toNanos();

  // Each look at the clock takes longer than a block may need to become durable after it is gone.
  private long pollNanos = Duration.ofSeconds(2).toNanos();
  private long nanos;
  private boolean isInBuffer = true;
  private boolean isDurable;
  private int asked;

  private FlushResult await(BooleanSupplier durable) throws InterruptedException {
    PeerWrites dumps = dumps();
    return dumps.await(nextStage(durable), PATIENCE);
  }

  private PeerWrites dumps() {
    SlotDirectory pool = only(SlotDirectory.class, "isDumpedElsewhere", () -> isInBuffer);
    PeerWrites dumps = new PeerWrites(pool, () -> nanos += pollNanos);
    dumps.add(ID.high(0), ID.low(0));
    return dumps;
  }

  private static Store nextStage(BooleanSupplier durable) {
    return only(Store.class, "durable", () -> bits(durable.getAsBoolean()));
  }

  private static BitSet bits(boolean first) {
    BitSet bits = new BitSet();
    bits.set(0, first);
    return bits;
  }

  /** Something that answers one question, and its name. */
  private static <T> T only(Class<T> type, String question, Supplier<?> answer) {
    Object made =
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (_, method, _) -> {
              if (method.getName().equals("name")) {
                return "Backend";
              }
              assertThat(method.getName()).isEqualTo(question);
              return answer.get();
            });
    return type.cast(made);
  }

  @Test
  void waitsForOneThatIsStillBeingBrought() throws Exception {
    assertThat(await(() -> ++asked == 5).ok()).isTrue();
    assertThat(asked).isEqualTo(5);
  }

  @Test
  void isNotTakenInByOneThatBecomesDurableAndGoesBetweenTwoLooks() throws Exception {
    FlushResult flushed =
        await(
            () -> {
              boolean answer = isDurable;
              // Right after the answer it is committed, and its slots are given to another block.
              isDurable = true;
              isInBuffer = false;
              return answer;
            });
    assertThat(flushed.failedCount()).isZero();
    assertThat(flushed.pendingBlocks()).isZero();
  }

  @Test
  void saysThatOneHasFailedWhichIsGoneAndNotDurable() throws Exception {
    isInBuffer = false;
    FlushResult flushed = await(() -> false);
    assertThat(flushed.failedBlocks()).isEqualTo(ID);
    assertThat(flushed.cause()).hasMessageContaining("another worker");
  }

  @Test
  void callsOnePendingThatIsNotDurableInTime() throws Exception {
    FlushResult flushed = await(() -> false);
    assertThat(flushed.pendingBlocks()).isEqualTo(1);
    assertThat(flushed.failedCount()).isZero();
  }

  @Test
  void callsOnePendingThatHasJustGoneAndNamesItWhenItHadItsTime() throws Exception {
    pollNanos = Duration.ofMillis(100).toNanos();
    isInBuffer = false;
    PeerWrites dumps = dumps();
    Store next = nextStage(() -> isDurable);
    for (int flush = 0; flush < 5; flush++) {
      FlushResult early = dumps.await(next, nanos);
      assertThat(early.pendingBlocks()).isEqualTo(1);
      assertThat(early.failedCount()).isZero();
    }
    nanos += Duration.ofSeconds(1).toNanos();
    assertThat(dumps.await(next, nanos).failedBlocks()).isEqualTo(ID);
    assertThat(dumps.await(next, nanos).ok()).isTrue();
  }

  @Test
  void waitsAMomentForOneThatIsCommittedAfterItWent() throws Exception {
    pollNanos = Duration.ofMillis(100).toNanos();
    isInBuffer = false;
    PeerWrites dumps = dumps();
    Store next = nextStage(() -> isDurable);
    assertThat(dumps.await(next, nanos).pendingBlocks()).isEqualTo(1);
    isDurable = true;
    assertThat(dumps.await(next, nanos).ok()).isTrue();
  }
}

package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

final class StoreLifeTest {

  private final StoreLife life = new StoreLife("Posix");

  @Test
  void goesFromNewToClosed() {
    assertThat(life).hasToString("Posix[NEW]");
    life.configured();
    assertThat(life).hasToString("Posix[CONFIGURED]");
    assertThat(life.isOpen()).isFalse();
    life.opened();
    assertThat(life.isOpen()).isTrue();
    life.requireOpen();
    assertThat(life.closed()).as("there is something to release").isTrue();
    assertThat(life.isOpen()).isFalse();
    assertThat(life.closed()).as("once").isFalse();
    assertThat(life).hasToString("Posix[CLOSED]");
  }

  @Test
  void namesStoreStateAndCallWhenTheOrderIsWrong() {
    requireWrong(life::opened, "Store Posix is NEW: open is allowed only when CONFIGURED");
    requireWrong(
        life::requireOpen, "Store Posix is NEW, not OPEN: call configure, then open, before use");
    life.configured();
    requireWrong(life::configured, "Store Posix is CONFIGURED: configure is allowed only when NEW");
    requireWrong(
        life::requireOpen,
        "Store Posix is CONFIGURED, not OPEN: call configure, then open, before use");
    life.opened();
    requireWrong(life::configured, "Store Posix is OPEN: configure is allowed only when NEW");
    requireWrong(life::opened, "Store Posix is OPEN: open is allowed only when CONFIGURED");
    life.closed();
    requireWrong(life::configured, "Store Posix is CLOSED: configure is allowed only when NEW");
    requireWrong(life::opened, "Store Posix is CLOSED: open is allowed only when CONFIGURED");
  }

  @Test
  void answersUseAfterCloseWithAnExceptionOfItsOwn() {
    life.configured();
    life.opened();
    life.closed();
    assertThatThrownBy(life::requireOpen)
        .isInstanceOf(StoreClosedException.class)
        .hasMessage("Store Posix is closed");
  }

  @Test
  void hasNothingToReleaseWhenItWasNeverOpen() {
    assertThat(new StoreLife("A").closed()).isFalse();
    life.configured();
    assertThat(life.closed()).isFalse();
    assertThatThrownBy(life::requireOpen).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void letsOneOfManyThreadsRelease() throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      for (int round = 0; round < 200; round++) {
        StoreLife shared = new StoreLife("Posix");
        shared.configured();
        shared.opened();
        List<Callable<Boolean>> closers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          closers.add(shared::closed);
        }
        int released = 0;
        for (Future<Boolean> closed : threads.invokeAll(closers)) {
          released += closed.get() ? 1 : 0;
        }
        assertThat(released).isEqualTo(1);
      }
    }
  }

  private static void requireWrong(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalStateException.class).hasMessage(message);
  }
}

package ucm.server.session;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.TransferTask;
import ucm.testkit.BlockBytes;
import ucm.testkit.PromptStore;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** When a save is told as stored. */
final class RankTransfersTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(64, 64, 64);

  private enum Room {
    SOME,
    NONE,
    CLOSED
  }

  /** A dump that the store above has, and the last one not yet. */
  private static final class Dump implements Task {

    final TransferTask moved;
    @Nullable Runnable settled;

    Dump(Transfer transfer) {
      moved = new TransferTask(1, transfer);
    }

    @Override
    public long id() {
      return moved.id();
    }

    @Override
    public boolean check() {
      return moved.check();
    }

    @Override
    public TransferResult await(Duration timeout) throws InterruptedException {
      return moved.await(timeout);
    }

    @Override
    public TransferResult result() {
      return moved.result();
    }

    @Override
    public void whenTerminal(Runnable action) {
      moved.whenTerminal(action);
    }

    @Override
    public void whenSettled(Runnable action) {
      settled = action;
    }
  }

  @ParameterizedTest
  @EnumSource
  void isToldWhenTheLastStageHasRoomForItElseWhenItIsThere(Room room) {
    BlockIds ids = BlockBytes.ids(1, 1);
    Dump dump = new Dump(TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids).transfer());
    AtomicBoolean told = new AtomicBoolean();
    RankTransfers.whenKept(
        new PromptStore() {
          @Override
          public boolean hasRoom(long bytes) {
            if (room == Room.CLOSED) {
              throw new StoreClosedException("it");
            }
            return room == Room.SOME;
          }
        },
        dump,
        () -> told.set(true));
    assertThat(told).isFalse();
    dump.moved.ok(0);
    assertThat(told.get()).isEqualTo(room == Room.SOME);
    if (dump.settled != null) {
      dump.settled.run();
    }
    assertThat(told).isTrue();
  }
}

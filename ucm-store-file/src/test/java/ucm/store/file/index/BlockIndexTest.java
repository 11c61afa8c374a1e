package ucm.store.file.index;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.memory.LazyMemory;
import ucm.testkit.BlockBytes;

final class BlockIndexTest {

  @ParameterizedTest
  @ValueSource(ints = {300, 4096, 100_000})
  void knowsExactlyWhatWasAddedAndNotRemoved(int bound) {
    BlockIndex index = new BlockIndex(bound);
    BlockIds ids = BlockBytes.ids(1, bound * 3 / 4);
    Random random = new Random(7);
    Set<Integer> expected = new HashSet<>();
    for (int round = 0; round < 4 * ids.size(); round++) {
      int i = random.nextInt(ids.size());
      if (random.nextInt(3) > 0) {
        index.add(ids.high(i), ids.low(i));
        expected.add(i);
      } else {
        assertThat(index.remove(ids.high(i), ids.low(i))).isEqualTo(expected.remove(i));
      }
    }
    assertThat(index.forgottenCount()).isZero();
    assertThat(index.size()).isEqualTo(expected.size());
    for (int i = 0; i < ids.size(); i++) {
      assertThat(index.contains(ids.high(i), ids.low(i))).isEqualTo(expected.contains(i));
    }
    for (int i = 0; i < ids.size(); i++) {
      index.remove(ids.high(i), ids.low(i));
    }
    assertThat(index.size()).isZero();
  }

  @Test
  void takesMemoryForTheBlocksItKnows() {
    BlockIndex index = new BlockIndex(4_194_304);
    assertThat(index.byteSize()).isLessThanOrEqualTo(1 << 20);
    BlockIds ids = BlockBytes.ids(1, 200_000);
    for (int i = 0; i < ids.size(); i++) {
      index.add(ids.high(i), ids.low(i));
    }
    assertThat(index.size()).isEqualTo(ids.size());
    assertThat(index.byteSize()).isBetween(24L * ids.size(), 48L * ids.size());
    assertThat(index.forgottenCount()).isZero();
  }

  @Test
  void forgetsBlocksWhereTheKernelGivesNoMoreMemory() {
    AtomicInteger given = new AtomicInteger();
    IndexStripe stripe =
        new IndexStripe(
            100_000,
            bytes -> {
              if (given.getAndIncrement() == 1) {
                throw new FileException("mmap", bytes + " bytes", Errno.ENOMEM);
              }
              return LazyMemory.zeros(bytes);
            });
    BlockIds ids = BlockBytes.ids(1, 5_000);
    int forgotten = 0;
    for (int i = 0; i < ids.size(); i++) {
      long high = ids.high(i);
      long low = ids.low(i);
      forgotten += stripe.add(IndexStripe.hash(high, low), high, low) ? 1 : 0;
      assertThat(stripe.holds(IndexStripe.hash(high, low), high, low)).isTrue();
    }
    assertThat(forgotten).isPositive();
    assertThat(stripe.size()).isEqualTo(ids.size() - forgotten);
    assertThat(given).hasValue(2);
  }

  @Test
  void knownBlocksStayKnownWhileItGrows() throws InterruptedException {
    BlockIndex index = new BlockIndex(1_000_000);
    BlockIds known = BlockBytes.ids(1, 1_000);
    for (int i = 0; i < known.size(); i++) {
      index.add(known.high(i), known.low(i));
    }
    AtomicBoolean grown = new AtomicBoolean();
    AtomicBoolean missed = new AtomicBoolean();
    CountDownLatch reading = new CountDownLatch(1);
    Thread reader =
        Thread.ofPlatform()
            .start(
                () -> {
                  while (!grown.get()) {
                    for (int i = 0; i < known.size(); i++) {
                      if (!index.contains(known.high(i), known.low(i))) {
                        missed.set(true);
                      }
                    }
                    reading.countDown();
                  }
                });
    reading.await();
    BlockIds more = BlockBytes.ids(2, 500_000);
    for (int i = 0; i < more.size(); i++) {
      index.add(more.high(i), more.low(i));
    }
    grown.set(true);
    reader.join();
    assertThat(missed).isFalse();
    assertThat(index.size()).isEqualTo(known.size() + more.size());
  }

  @Test
  void comparesAllBits() {
    BlockIndex index = new BlockIndex(1000);
    index.add(5, 0);
    for (int bit = 0; bit < 64; bit++) {
      assertThat(index.contains(5, 1L << bit)).isFalse();
      assertThat(index.contains(5 ^ (1L << bit), 0)).isFalse();
    }
    assertThat(index.contains(5, 0)).isTrue();
    index.add(0, 5);
    assertThat(index.contains(0, 5)).as("marks a free slot, so is never known").isFalse();
  }

  @Test
  void forgetsOneForEachThatComesWhenFull() {
    BlockIndex index = new BlockIndex(100);
    index.scanned();
    BlockIds ids = BlockBytes.ids(2, 1000);
    for (int i = 0; i < ids.size(); i++) {
      assertThat(index.isComplete()).isEqualTo(i <= 100);
      index.add(ids.high(i), ids.low(i));
      assertThat(index.contains(ids.high(i), ids.low(i))).as("the newest").isTrue();
      assertThat(index.size()).isEqualTo(Math.min(i + 1, 100));
    }
    assertThat(index.forgottenCount()).isEqualTo(900);
    int known = 0;
    for (int i = 0; i < ids.size(); i++) {
      known += index.contains(ids.high(i), ids.low(i)) ? 1 : 0;
      assertThat(index.excludes(ids.high(i), ids.low(i))).isFalse();
    }
    assertThat(known).isEqualTo(100);
  }

  @Test
  void excludesOnlyWhatItWouldKnow() {
    BlockIndex index = new BlockIndex(100);
    index.add(1, 2);
    assertThat(index.excludes(3, 4)).as("before the scan has ended").isFalse();
    index.scanned();
    assertThat(index.excludes(3, 4)).isTrue();
    assertThat(index.excludes(1, 2)).isFalse();
    assertThat(index.excludes(0, 4)).as("is never known").isFalse();
  }

  @Test
  void isOffWithoutRoom() {
    BlockIndex index = new BlockIndex(0);
    index.add(1, 2);
    assertThat(index.contains(1, 2)).isFalse();
    assertThat(index.remove(1, 2)).isFalse();
    assertThat(index.isOn()).isFalse();
    assertThat(index.size()).isZero();
  }

  /** Ids that stay are never excluded, ids that never came are never known, while others move. */
  @Test
  void answersRightWhileOthersWrite() throws Exception {
    BlockIndex index = new BlockIndex(3000);
    index.scanned();
    BlockIds staying = BlockBytes.ids(3, 1000);
    for (int i = 0; i < staying.size(); i++) {
      index.add(staying.high(i), staying.low(i));
    }
    BlockIds absent = BlockBytes.ids(4, 1000);
    AtomicBoolean stop = new AtomicBoolean();
    CountDownLatch moving = new CountDownLatch(2);
    List<Thread> writers = new ArrayList<>();
    for (int seed = 10; seed < 12; seed++) {
      BlockIds ids = BlockBytes.ids(seed, 900);
      writers.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    while (!stop.get()) {
                      for (int i = 0; i < ids.size(); i++) {
                        index.add(ids.high(i), ids.low(i));
                      }
                      moving.countDown();
                      for (int i = 0; i < ids.size(); i++) {
                        index.remove(ids.high(i), ids.low(i));
                      }
                    }
                  }));
    }
    try {
      moving.await();
      for (int round = 0; round < 300; round++) {
        for (int i = 0; i < staying.size(); i++) {
          if (index.excludes(staying.high(i), staying.low(i))
              || index.contains(absent.high(i), absent.low(i))) {
            throw new AssertionError("round " + round + ", id " + i);
          }
        }
      }
    } finally {
      stop.set(true);
      for (Thread writer : writers) {
        writer.join();
      }
    }
    assertThat(index.size()).isEqualTo(staying.size());
    assertThat(index.forgottenCount()).isZero();
  }
}

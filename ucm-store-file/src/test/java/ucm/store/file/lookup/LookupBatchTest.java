package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;

final class LookupBatchTest {

  @Test
  void givesOutInOrderWhatIsAskedFor() throws Exception {
    LookupBatch batch = batch(100, 3, 31, 32, 64, 99);
    assertThat(batch.left()).isEqualTo(5);
    for (int i : new int[] {3, 31, 32, 64, 99}) {
      assertThat(batch.take()).isEqualTo(i);
      batch.answer(i, i % 2 == 0);
    }
    assertThat(batch.left()).isZero();
    assertThat(batch.take()).isEqualTo(-1);
    assertThat(batch.isAnswered()).isTrue();
    assertThat(batch.await(0)).isTrue();
    assertThat(found(batch)).hasToString("{32, 64}");
  }

  @Test
  void endsWithItsLastAnswerThoughOthersWereNotAskedFor() throws Exception {
    LookupBatch batch = batch(200, 5, 6);
    assertThat(batch.take()).isEqualTo(5);
    assertThat(batch.take()).isEqualTo(6);
    batch.answer(6, true);
    assertThat(batch.take()).isEqualTo(-1);
    assertThat(batch.mayHaveMore()).as("no thread need look for more").isFalse();
    assertThat(batch.await(0)).as("the first is still looked up").isFalse();
    batch.answer(5, false);
    assertThat(batch.await(0)).isTrue();
    assertThat(found(batch)).hasToString("{6}");
  }

  @Test
  void countsTheFirstAnswer() {
    LookupBatch batch = batch(2, 0, 1);
    batch.take();
    batch.take();
    batch.answer(0, true);
    batch.answer(0, false);
    batch.answer(1, false);
    batch.answer(1, true);
    assertThat(found(batch)).hasToString("{0}");
    assertThat(batch.isAnswered()).isTrue();
  }

  @Test
  void takesNoAnswerForWhatWasNotAsked() {
    LookupBatch batch = batch(40, 2);
    batch.answer(33, true);
    assertThat(found(batch)).hasToString("{}");
  }

  @Test
  void beginsWithNothingAfterAMiss() throws Exception {
    LookupBatch batch = LookupBatch.prefix(ids(70));
    assertThat(batch.left()).isEqualTo(70);
    for (int i = 0; i < 35; i++) {
      assertThat(batch.take()).isEqualTo(i);
    }
    batch.answer(34, true);
    batch.answer(33, false);
    assertThat(batch.left()).isZero();
    assertThat(batch.take()).isEqualTo(-1);
    assertThat(batch.await(0)).as("those before it are looked up").isFalse();
    for (int i = 0; i < 33; i++) {
      batch.answer(i, true);
    }
    assertThat(batch.await(0)).isTrue();
    assertThat(batch.isAnswered()).isTrue();
    assertThat(batch.firstAbsent()).isEqualTo(33);
  }

  @Test
  void findsNoneAbsentWhenAllArePresent() {
    LookupBatch batch = LookupBatch.prefix(ids(64));
    for (int i = batch.take(); i >= 0; i = batch.take()) {
      batch.answer(i, true);
    }
    assertThat(batch.isAnswered()).isTrue();
    assertThat(batch.firstAbsent()).isEqualTo(64);
  }

  @Test
  void takesForAbsentWhatHasNoAnswer() throws Exception {
    LookupBatch batch = LookupBatch.prefix(ids(3));
    batch.answer(batch.take(), true);
    batch.take();
    batch.stop();
    assertThat(batch.await(0)).isTrue();
    assertThat(batch.isAnswered()).isFalse();
    assertThat(batch.take()).as("it is over").isEqualTo(-1);
    assertThat(batch.firstAbsent()).isEqualTo(1);
  }

  @Test
  void givesUpWhatIsHidden() throws Exception {
    LookupBatch batch = batch(100, 1, 40, 41, 99);
    assertThat(batch.take()).as("a thread hangs with it").isEqualTo(1);
    batch.giveUp((high, low) -> low == 1 || low == 41);
    assertThat(batch.left()).isEqualTo(2);
    assertThat(batch.take()).isEqualTo(40);
    batch.answer(40, true);
    assertThat(batch.take()).isEqualTo(99);
    batch.answer(99, true);
    assertThat(batch.take()).isEqualTo(-1);
    assertThat(batch.await(0)).isTrue();
    batch.answer(1, true);
    assertThat(found(batch)).as("the first answer counts").hasToString("{40, 99}");
  }

  @Test
  void givesUpAPrefixAtWhatIsHidden() throws Exception {
    LookupBatch batch = LookupBatch.prefix(ids(50));
    for (int i = 0; i < 10; i++) {
      batch.take();
      batch.answer(i, true);
    }
    batch.giveUp((high, low) -> low >= 10);
    assertThat(batch.await(0)).isTrue();
    assertThat(batch.isAnswered()).isTrue();
    assertThat(batch.firstAbsent()).isEqualTo(10);
  }

  @Test
  void isLookedUpByManyThreadsAtOnce() throws Exception {
    Random random = new Random(7);
    for (int round = 0; round < 200; round++) {
      int size = 1 + random.nextInt(300);
      LookupBatch batch = LookupBatch.of(ids(size));
      BitSet asked = new BitSet();
      BitSet present = new BitSet();
      asked.set(random.nextInt(size));
      for (int i = 0; i < size; i++) {
        if (random.nextInt(3) > 0) {
          asked.set(i);
        }
        present.set(i, random.nextBoolean());
      }
      asked.stream().forEach(batch::ask);
      AtomicIntegerArray taken = new AtomicIntegerArray(size);
      lookUp(batch, present, taken);
      assertThat(batch.isAnswered()).as("round %d", round).isTrue();
      present.and(asked);
      assertThat(found(batch)).as("round %d", round).isEqualTo(present);
      for (int i = 0; i < size; i++) {
        assertThat(taken.get(i)).as("round %d, id %d", round, i).isEqualTo(asked.get(i) ? 1 : 0);
      }
    }
  }

  @Test
  void findsTheFirstAbsentWithManyThreads() throws Exception {
    Random random = new Random(11);
    for (int round = 0; round < 200; round++) {
      int size = 1 + random.nextInt(300);
      BitSet present = new BitSet();
      for (int i = 0; i < size; i++) {
        present.set(i, random.nextInt(100) > 0);
      }
      LookupBatch batch = LookupBatch.prefix(ids(size));
      AtomicIntegerArray taken = new AtomicIntegerArray(size);
      lookUp(batch, present, taken);
      assertThat(batch.isAnswered()).as("round %d", round).isTrue();
      int absent = Math.min(size, present.nextClearBit(0));
      assertThat(batch.firstAbsent()).as("round %d", round).isEqualTo(absent);
      for (int i = 0; i < size; i++) {
        assertThat(taken.get(i)).as("round %d, id %d", round, i).isBetween(i <= absent ? 1 : 0, 1);
      }
    }
  }

  /** Three threads look up; the caller waits, as long as it takes. */
  private static void lookUp(LookupBatch batch, BitSet present, AtomicIntegerArray taken)
      throws InterruptedException {
    CountDownLatch start = new CountDownLatch(1);
    List<Thread> threads = new ArrayList<>();
    for (int n = 0; n < 3; n++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    awaitUninterrupted(start);
                    for (int i = batch.take(); i >= 0; i = batch.take()) {
                      taken.incrementAndGet(i);
                      batch.answer(i, present.get(i));
                    }
                  }));
    }
    start.countDown();
    while (!batch.await(1_000_000_000)) {
      assertThat(threads).as("the batch ends with its last answer").anyMatch(Thread::isAlive);
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void awaitUninterrupted(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static LookupBatch batch(int size, int... asked) {
    LookupBatch batch = LookupBatch.of(ids(size));
    for (int i : asked) {
      batch.ask(i);
    }
    return batch;
  }

  private static BitSet found(LookupBatch batch) {
    BitSet found = new BitSet();
    batch.addTo(found);
    return found;
  }

  private static BlockIds ids(int size) {
    long[] words = new long[2 * size];
    for (int i = 0; i < size; i++) {
      words[2 * i + 1] = i;
    }
    return BlockIds.wrap(words);
  }
}

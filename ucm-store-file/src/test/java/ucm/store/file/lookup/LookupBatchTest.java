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

final class LookupWaveTest {

  @Test
  void givesOutInOrderWhatIsAskedFor() throws Exception {
    LookupWave wave = wave(100, 3, 31, 32, 64, 99);
    assertThat(wave.left()).isEqualTo(5);
    for (int i : new int[] {3, 31, 32, 64, 99}) {
      assertThat(wave.take()).isEqualTo(i);
      wave.answer(i, i % 2 == 0);
    }
    assertThat(wave.left()).isZero();
    assertThat(wave.take()).isEqualTo(-1);
    assertThat(wave.isAnswered()).isTrue();
    assertThat(wave.await(0)).isTrue();
    assertThat(found(wave)).hasToString("{32, 64}");
  }

  @Test
  void endsWithItsLastAnswerThoughOthersWereNotAskedFor() throws Exception {
    LookupWave wave = wave(200, 5, 6);
    assertThat(wave.take()).isEqualTo(5);
    assertThat(wave.take()).isEqualTo(6);
    wave.answer(6, true);
    assertThat(wave.take()).isEqualTo(-1);
    assertThat(wave.mayHaveMore()).as("no thread need look for more").isFalse();
    assertThat(wave.await(0)).as("the first is still looked up").isFalse();
    wave.answer(5, false);
    assertThat(wave.await(0)).isTrue();
    assertThat(found(wave)).hasToString("{6}");
  }

  @Test
  void countsTheFirstAnswer() {
    LookupWave wave = wave(2, 0, 1);
    wave.take();
    wave.take();
    wave.answer(0, true);
    wave.answer(0, false);
    wave.answer(1, false);
    wave.answer(1, true);
    assertThat(found(wave)).hasToString("{0}");
    assertThat(wave.isAnswered()).isTrue();
  }

  @Test
  void takesNoAnswerForWhatWasNotAsked() {
    LookupWave wave = wave(40, 2);
    wave.answer(33, true);
    assertThat(found(wave)).hasToString("{}");
  }

  @Test
  void beginsWithNothingAfterAMiss() throws Exception {
    LookupWave wave = LookupWave.prefix(ids(70));
    assertThat(wave.left()).isEqualTo(70);
    for (int i = 0; i < 35; i++) {
      assertThat(wave.take()).isEqualTo(i);
    }
    wave.answer(34, true);
    wave.answer(33, false);
    assertThat(wave.left()).isZero();
    assertThat(wave.take()).isEqualTo(-1);
    assertThat(wave.await(0)).as("those before it are looked up").isFalse();
    for (int i = 0; i < 33; i++) {
      wave.answer(i, true);
    }
    assertThat(wave.await(0)).isTrue();
    assertThat(wave.isAnswered()).isTrue();
    assertThat(wave.firstAbsent()).isEqualTo(33);
  }

  @Test
  void findsNoneAbsentWhenAllArePresent() {
    LookupWave wave = LookupWave.prefix(ids(64));
    for (int i = wave.take(); i >= 0; i = wave.take()) {
      wave.answer(i, true);
    }
    assertThat(wave.isAnswered()).isTrue();
    assertThat(wave.firstAbsent()).isEqualTo(64);
  }

  @Test
  void takesForAbsentWhatHasNoAnswer() throws Exception {
    LookupWave wave = LookupWave.prefix(ids(3));
    wave.answer(wave.take(), true);
    wave.take();
    wave.stop();
    assertThat(wave.await(0)).isTrue();
    assertThat(wave.isAnswered()).isFalse();
    assertThat(wave.take()).as("it is over").isEqualTo(-1);
    assertThat(wave.firstAbsent()).isEqualTo(1);
  }

  @Test
  void givesUpWhatIsHidden() throws Exception {
    LookupWave wave = wave(100, 1, 40, 41, 99);
    assertThat(wave.take()).as("a thread hangs with it").isEqualTo(1);
    wave.giveUp((high, low) -> low == 1 || low == 41);
    assertThat(wave.left()).isEqualTo(2);
    assertThat(wave.take()).isEqualTo(40);
    wave.answer(40, true);
    assertThat(wave.take()).isEqualTo(99);
    wave.answer(99, true);
    assertThat(wave.take()).isEqualTo(-1);
    assertThat(wave.await(0)).isTrue();
    wave.answer(1, true);
    assertThat(found(wave)).as("the first answer counts").hasToString("{40, 99}");
  }

  @Test
  void givesUpAPrefixAtWhatIsHidden() throws Exception {
    LookupWave wave = LookupWave.prefix(ids(50));
    for (int i = 0; i < 10; i++) {
      wave.take();
      wave.answer(i, true);
    }
    wave.giveUp((high, low) -> low >= 10);
    assertThat(wave.await(0)).isTrue();
    assertThat(wave.isAnswered()).isTrue();
    assertThat(wave.firstAbsent()).isEqualTo(10);
  }

  @Test
  void isLookedUpByManyThreadsAtOnce() throws Exception {
    Random random = new Random(7);
    for (int round = 0; round < 200; round++) {
      int size = 1 + random.nextInt(300);
      LookupWave wave = LookupWave.of(ids(size));
      BitSet asked = new BitSet();
      BitSet present = new BitSet();
      asked.set(random.nextInt(size));
      for (int i = 0; i < size; i++) {
        if (random.nextInt(3) > 0) {
          asked.set(i);
        }
        present.set(i, random.nextBoolean());
      }
      asked.stream().forEach(wave::ask);
      AtomicIntegerArray taken = new AtomicIntegerArray(size);
      lookUp(wave, present, taken);
      assertThat(wave.isAnswered()).as("round %d", round).isTrue();
      present.and(asked);
      assertThat(found(wave)).as("round %d", round).isEqualTo(present);
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
      LookupWave wave = LookupWave.prefix(ids(size));
      AtomicIntegerArray taken = new AtomicIntegerArray(size);
      lookUp(wave, present, taken);
      assertThat(wave.isAnswered()).as("round %d", round).isTrue();
      int absent = Math.min(size, present.nextClearBit(0));
      assertThat(wave.firstAbsent()).as("round %d", round).isEqualTo(absent);
      for (int i = 0; i < size; i++) {
        assertThat(taken.get(i)).as("round %d, id %d", round, i).isBetween(i <= absent ? 1 : 0, 1);
      }
    }
  }

  /** Three threads look up; the caller waits, as long as it takes. */
  private static void lookUp(LookupWave wave, BitSet present, AtomicIntegerArray taken)
      throws InterruptedException {
    CountDownLatch start = new CountDownLatch(1);
    List<Thread> threads = new ArrayList<>();
    for (int n = 0; n < 3; n++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    awaitUninterrupted(start);
                    for (int i = wave.take(); i >= 0; i = wave.take()) {
                      taken.incrementAndGet(i);
                      wave.answer(i, present.get(i));
                    }
                  }));
    }
    start.countDown();
    while (!wave.await(1_000_000_000)) {
      assertThat(threads).as("the wave ends with its last answer").anyMatch(Thread::isAlive);
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

  private static LookupWave wave(int size, int... asked) {
    LookupWave wave = LookupWave.of(ids(size));
    for (int i : asked) {
      wave.ask(i);
    }
    return wave;
  }

  private static BitSet found(LookupWave wave) {
    BitSet found = new BitSet();
    wave.addTo(found);
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

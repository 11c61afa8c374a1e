package ucm.store.file.lookup;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.store.file.format.BlockPaths;

/** What look-ups on a disk come to seldom, or in one order of many: see {@link DiskLookupTest} for the others. */
final class LookupBatchTest {

  private static final BlockPaths ONE = new BlockPaths("Local", List.of("a"), 3);

  @Test
  void givesUpWhatIsHidden() throws Exception {
    LookupBatch batch = batch(100, 1, 40, 41, 99);
    assertThat(batch.take(0)).as("a thread hangs with it").isEqualTo(1);
    batch.giveUp(i -> i == 1 || i == 41);
    assertThat(take(batch)).containsExactly(40, 99);
    batch.answer(40, true);
    batch.answer(99, true);
    assertThat(batch.await(0)).isTrue();
    batch.answer(1, true);
    assertThat(batch.present()).as("the first answer counts").hasToString("{40, 99}");
  }

  @Test
  void givesUpAPrefixAtWhatIsHidden() throws Exception {
    LookupBatch batch = prefix(50);
    for (int i = 0; i < 10; i++) {
      batch.answer(batch.take(0), true);
    }
    batch.giveUp(i -> i >= 10);
    assertThat(batch.await(0)).isTrue();
    assertThat(batch.isAnswered()).isTrue();
    assertThat(firstAbsent(batch)).isEqualTo(10);
  }

  @Test
  void isLookedUpByManyThreadsAtOnce() throws Exception {
    Random random = new Random(7);
    for (int round = 0; round < 40; round++) {
      boolean isPrefix = round % 2 == 0;
      int size = 1 + random.nextInt(300);
      BitSet asked = new BitSet();
      BitSet present = new BitSet();
      asked.set(0, size);
      for (int i = 0; i < size; i++) {
        asked.set(i, isPrefix || random.nextInt(3) > 0);
        present.set(i, random.nextInt(100) > 0);
      }
      LookupBatch batch = new LookupBatch(ONE, ids(size), (BitSet) asked.clone(), isPrefix);
      AtomicIntegerArray taken = lookUp(batch, present, size);
      assertThat(batch.isAnswered()).as("round %d", round).isTrue();
      int absent = isPrefix ? present.nextClearBit(0) : size;
      for (int i = 0; i < size; i++) {
        assertThat(taken.get(i)).as("round %d, id %d", round, i).isLessThanOrEqualTo(1);
        boolean isNeeded = asked.get(i) && i <= absent;
        assertThat(taken.get(i) == 1 || !isNeeded).as("round %d, id %d", round, i).isTrue();
      }
      present.and(asked);
      if (isPrefix) {
        assertThat(firstAbsent(batch)).as("round %d", round).isEqualTo(absent);
      } else {
        assertThat(batch.present()).as("round %d", round).isEqualTo(present);
      }
    }
  }

  /** Three threads look up; the caller waits, as long as it takes. */
  private static AtomicIntegerArray lookUp(LookupBatch batch, BitSet present, int size)
      throws InterruptedException {
    AtomicIntegerArray taken = new AtomicIntegerArray(size);
    List<Thread> threads = new ArrayList<>();
    for (int n = 0; n < 3; n++) {
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int i = batch.take(0); i >= 0; i = batch.take(0)) {
                      taken.incrementAndGet(i);
                      batch.answer(i, present.get(i));
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(batch.await(0)).as("the batch ends with its last answer").isTrue();
    return taken;
  }

  private static List<Integer> take(LookupBatch batch) {
    List<Integer> taken = new ArrayList<>();
    for (int i = batch.take(0); i >= 0; i = batch.take(0)) {
      taken.add(i);
    }
    return taken;
  }

  private static int firstAbsent(LookupBatch batch) {
    return batch.present().nextClearBit(0);
  }

  private static LookupBatch batch(int size, int... asked) {
    BitSet which = new BitSet();
    for (int i : asked) {
      which.set(i);
    }
    return new LookupBatch(ONE, ids(size), which, false);
  }

  private static LookupBatch prefix(int size) {
    BitSet all = new BitSet();
    all.set(0, size);
    return new LookupBatch(ONE, ids(size), all, true);
  }

  private static BlockIds ids(int size) {
    long[] words = new long[2 * size];
    for (int i = 0; i < size; i++) {
      words[2 * i + 1] = i;
    }
    return BlockIds.wrap(words);
  }
}

package ucm.lite.record;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IntTapeTest {
  @ParameterizedTest
  @ValueSource(longs = {0, 1 << 20, Long.MAX_VALUE})
  void givesBackWhatWasWrittenOnHeapInAFileAndAcrossBoth(long heapInts) {
    Random random = new Random(1);
    int[] expected = random.ints(2_500_000).toArray();
    try (IntTape tape = new IntTape(heapInts)) {
      int[] part = new int[4099];
      for (int at = 0; at < expected.length; ) {
        int count = Math.min(expected.length - at, random.nextInt(part.length));
        System.arraycopy(expected, at, part, 0, count);
        tape.append(part, count);
        at += count;
      }
      assertThat(tape.size()).isEqualTo(expected.length);
      assertThat(tape.spilled()).isEqualTo(heapInts < Long.MAX_VALUE);
      // Over the border between two chunks.
      int[] changed = {1, 2, 3, 4};
      tape.write((2 << 20) - 2, changed, 4);
      System.arraycopy(changed, 0, expected, (2 << 20) - 2, 4);
      int[] all = new int[expected.length];
      tape.read(0, all, all.length);
      assertThat(all).isEqualTo(expected);
    }
  }
}

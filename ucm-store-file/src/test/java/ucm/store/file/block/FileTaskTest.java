package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;

final class FileTaskTest {

  private static final BlockLayout FOUR = BlockLayout.uniform(1, 8, 32);

  @ParameterizedTest
  @CsvSource({
    "'', ''",
    "1 1 1 1 2 2 2 2, 0-4 4-8",
    "1 2 3, 0-1 1-2 2-3",
    "1 1 1 2 2 2 3, 0-3 3-6 6-7",
    "1 2 2 3 4 4 4, 0-1 1-3 3-4 4-7",
    "1 1 1 1 1 2, 0-4 4-5 5-6"
  })
  void areOfABlockAtMost(String blocks, String groups) {
    assertThat(cut(FOUR, numbers(blocks))).hasToString("[" + groups.replace(" ", ", ") + "]");
  }

  private static int[] numbers(String text) {
    return Stream.of(text.split(" "))
        .filter(it -> !it.isEmpty())
        .mapToInt(Integer::parseInt)
        .toArray();
  }

  @Test
  void areNoLongerThanAWorkerShouldTake() {
    BlockLayout large = BlockLayout.uniform(1, 2L << 20, 8L << 20);
    assertThat(cut(large, 1, 1, 1, 1, 2, 2, 2)).containsExactly("0-2", "2-4", "4-6", "6-7");
  }

  private static List<String> cut(BlockLayout layout, int... blocks) {
    MemoryRegion memory = MemoryRegion.device(0, 0, layout.shardSize());
    Transfer.Builder builder = Transfer.packed(layout);
    for (int block : blocks) {
      builder.shard(0, block, 0).piece(memory, 0);
    }
    int[] starts = FileTask.groups(builder.build());
    List<String> found = new ArrayList<>();
    for (int group = 0; group < starts.length - 1; group++) {
      found.add(starts[group] + "-" + starts[group + 1]);
    }
    return found;
  }
}

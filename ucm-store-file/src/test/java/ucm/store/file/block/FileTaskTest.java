package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;

final class FileTaskTest {

  private static final BlockLayout FOUR = BlockLayout.uniform(1, 8, 32);

  @Test
  void areWholeBlocks() {
    assertThat(cut(FOUR, 1, 1, 1, 1, 2, 2, 2, 2)).containsExactly("0-4", "4-8");
  }

  @Test
  void areOneShardEachOfManyBlocks() {
    assertThat(cut(FOUR, 1, 2, 3)).containsExactly("0-1", "1-2", "2-3");
  }

  @Test
  void endWithAShorterOne() {
    assertThat(cut(FOUR, 1, 1, 1, 2, 2, 2, 3)).containsExactly("0-3", "3-6", "6-7");
  }

  @Test
  void areOfAnySizes() {
    assertThat(cut(FOUR, 1, 2, 2, 3, 4, 4, 4)).containsExactly("0-1", "1-3", "3-4", "4-7");
    assertThat(cut(FOUR, 1, 1, 2, 3, 3)).containsExactly("0-2", "2-3", "3-5");
    assertThat(cut(FOUR, 1, 1, 2, 2, 2)).containsExactly("0-2", "2-5");
  }

  @Test
  void areNoLongerThanABlock() {
    assertThat(cut(FOUR, 1, 1, 1, 1, 1, 1)).containsExactly("0-4", "4-6");
    assertThat(cut(FOUR, 1, 1, 1, 1, 1, 2)).containsExactly("0-4", "4-5", "5-6");
  }

  @Test
  void areNoLongerThanAWorkerShouldTake() {
    BlockLayout large = BlockLayout.uniform(1, 2L << 20, 8L << 20);
    assertThat(cut(large, 1, 1, 1, 1, 2, 2, 2)).containsExactly("0-2", "2-4", "4-6", "6-7");
  }

  @Test
  void areNoneOfNothing() {
    assertThat(cut(FOUR)).isEmpty();
  }

  @Test
  void areNamedInLogsAsTheOriginalDoes() {
    MemoryRegion memory = MemoryRegion.device(0, 0, FOUR.shardSize());
    Transfer transfer = Transfer.packed(FOUR).shard(0, 1, 0).piece(memory, 0).build();
    FileTask task = new FileTask(17, transfer, true, null, null, System::nanoTime);
    assertThat(task.name("Local")).isEqualTo("Local task(17,Cache2Backend,1,8)");
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

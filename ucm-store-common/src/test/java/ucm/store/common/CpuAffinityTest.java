package ucm.store.common;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;

class CpuAffinityTest {

  @Test
  void movesTheThreadsOfWorkersToTheCoresNamed() {
    long core = allowedCores().getFirst();
    AtomicReference<List<Long>> seen = new AtomicReference<>();
    try (ShardWorkers workers =
        new ShardWorkers(
            "test", 1, new ShardWorkers.Limits(1, "", 1, ""), CpuAffinity.of(List.of(core)))) {
      workers.submit(
          new ShardWorkers.Batch() {
            @Override
            public int size() {
              return 1;
            }

            @Override
            public void run(int index) {
              seen.set(allowedCores());
            }
          });
    }
    assertThat(seen.get()).containsExactly(core);
    assertThat(allowedCores()).as("the caller stays where it was").isNotEmpty();
  }

  @Test
  void refusesCoresThatAreNotThereAndNamesTheKey() {
    assertThatThrownBy(() -> CpuAffinity.of(List.of(65_000L)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cpu_affinity_cores")
        .hasMessageContaining("65000")
        .hasMessageContaining("EINVAL");
  }

  @Test
  void leavesItToTheKernelWhenNoneIsNamed() {
    assertThat(CpuAffinity.of(List.of())).isSameAs(CpuAffinity.ANY);
  }

  /** What the kernel says of the calling thread, for example {@code 0-1,4}. */
  private static List<Long> allowedCores() {
    try {
      String list =
          Files.readAllLines(Path.of("/proc/thread-self/status")).stream()
              .filter(line -> line.startsWith("Cpus_allowed_list:"))
              .findFirst()
              .orElseThrow()
              .replace("Cpus_allowed_list:", "")
              .strip();
      return Arrays.stream(list.split(",", -1))
          .flatMap(
              range -> {
                String[] ends = range.split("-", -1);
                return LongStream.rangeClosed(
                        Long.parseLong(ends[0]), Long.parseLong(ends[ends.length - 1]))
                    .boxed();
              })
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}

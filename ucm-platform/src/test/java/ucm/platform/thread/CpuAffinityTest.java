package ucm.platform.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import ucm.api.StoreException;

class CpuAffinityTest {

  @Test
  void movesTheThreadsOfWorkersToTheCoresNamed() {
    long core = AllowedCores.now().getFirst();
    AtomicReference<List<Long>> seen = new AtomicReference<>();
    try (ShardWorkers workers = new ShardWorkers("test", 1, 1, CpuAffinity.of(List.of(core)))) {
      workers.submit(
          new ShardWorkers.Batch() {
            @Override
            public int size() {
              return 1;
            }

            @Override
            public void run(int index) {
              seen.set(AllowedCores.now());
            }
          });
    }
    assertThat(seen.get()).containsExactly(core);
    assertThat(AllowedCores.now()).as("the caller stays where it was").isNotEmpty();
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
    assertThat(CpuAffinity.of(List.of())).isEqualTo(new CpuAffinity(List.of()));
  }
}

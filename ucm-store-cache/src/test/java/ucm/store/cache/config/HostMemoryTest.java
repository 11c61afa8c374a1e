package ucm.store.cache.config;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class HostMemoryTest {

  @TempDir Path root;

  @Test
  void readsWhatTheMachineHas() throws IOException {
    write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:    1000 kB\nCached: 1 kB\n");
    assertThat(new HostMemory(root).available()).isEqualTo(1000 * 1024);
  }

  @Test
  void readsWhatTheContainerLeaves() throws IOException {
    write("proc/meminfo", "MemAvailable: 1000 kB\n");
    write("sys/fs/cgroup/memory.max", "500000\n");
    write("sys/fs/cgroup/memory.current", "400000\n");
    write("sys/fs/cgroup/memory.stat", "anon 7\ninactive_file 50000\nactive_file 3\n");
    assertThat(new HostMemory(root).available()).isEqualTo(150_000);
  }

  @Test
  void containerWithoutALimitLeavesWhatTheMachineHas() throws IOException {
    write("proc/meminfo", "MemAvailable: 1000 kB\n");
    write("sys/fs/cgroup/memory.max", "max\n");
    write("sys/fs/cgroup/memory.current", "400000\n");
    assertThat(new HostMemory(root).available()).isEqualTo(1000 * 1024);
  }

  @Test
  void unknownIsNoLimit() {
    assertThat(new HostMemory(root).available()).isEqualTo(Long.MAX_VALUE);
  }

  private void write(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }
}

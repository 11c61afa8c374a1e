package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SharedFileTest {

  private static final long SIZE = 1 << 20;

  @TempDir private Path folder;

  @Test
  void makesAPrivateFileUnlessThereIsOne() throws Exception {
    Path path = folder.resolve("a");
    try (SharedFile first = create(path)) {
      assertThat(Files.getPosixFilePermissions(path))
          .isEqualTo(PosixFilePermissions.fromString("rw-------"));
      assertThat(SharedFile.create(path)).isNull();
      long inode = first.inode();
      assertThat(Files.getAttribute(path, "unix:ino")).isEqualTo(inode);
      first.remove();
      assertThat(path).doesNotExist();
      assertThat(first.inode()).isEqualTo(inode);
    }
  }

  @Test
  void twoMappingsShareMemoryThatIsAllocated() throws Exception {
    try (SharedFile file = create(folder.resolve("a"));
        Arena arena = Arena.ofShared()) {
      file.allocate(SIZE);
      assertThat(Files.size(file.path())).isEqualTo(SIZE);
      MemorySegment one = file.map(SIZE, arena);
      MemorySegment two = file.map(SIZE, arena);
      one.set(ValueLayout.JAVA_INT, SIZE - 4, 42);
      assertThat(two.get(ValueLayout.JAVA_INT, SIZE - 4)).isEqualTo(42);
    }
  }

  @Test
  void onlyFilesWhoseMakersAreDeadAreRemoved() throws Exception {
    Path dead = Files.createFile(folder.resolve("ucm-dead"));
    Path other = Files.createFile(folder.resolve("other"));
    Files.createSymbolicLink(folder.resolve("ucm-link"), other);
    try (SharedFile living = create(folder.resolve("ucm-living"))) {
      SharedFile.removeDead(folder, "ucm-");
      assertThat(dead).doesNotExist();
      assertThat(other).exists();
      assertThat(living.path()).exists();
    }
    // Its maker has closed it without removing it, as the kernel does for one that is killed.
    SharedFile.removeDead(folder, "ucm-");
    assertThat(folder.resolve("ucm-living")).doesNotExist();
  }

  private static SharedFile create(Path path) {
    return Objects.requireNonNull(SharedFile.create(path));
  }
}

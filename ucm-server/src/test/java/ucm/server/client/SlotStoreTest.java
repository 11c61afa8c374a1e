package ucm.server.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.server.protocol.WorkerFields.OpenedWorkerMessage;

/** Which files are taken for the daemon's slots. */
final class SlotStoreTest {

  private static final int SLOTS = 4;
  private static final long STRIDE = 4096;

  @TempDir private Path folder;

  private Path segment;

  @BeforeEach
  void makesASegment() throws IOException {
    segment = Files.write(folder.resolve("segment"), new byte[(int) (SLOTS * STRIDE)]);
    Files.setPosixFilePermissions(segment, PosixFilePermissions.fromString("rw-------"));
  }

  private static long inode(Path path) throws IOException {
    return (Long) Files.getAttribute(path, "unix:ino");
  }

  private static OpenedWorkerMessage opened(Path path, long bytes, long inode, int slots) {
    return new OpenedWorkerMessage(7, path.toString(), bytes, inode, slots, STRIDE, false, "", 0);
  }

  @Test
  void theOneThatTheDaemonMade() throws IOException {
    SlotStore.Mapping mapping =
        SlotStore.map(opened(segment, SLOTS * STRIDE, inode(segment), SLOTS));
    assertThat(mapping.memory().byteSize()).isEqualTo(SLOTS * STRIDE);
    mapping.arena().close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"size", "inode", "slots", "short"})
  void noneOfAnotherKind(String what) throws IOException {
    long bytes = SLOTS * STRIDE + (what.equals("size") ? 1 : 0);
    long inode = inode(segment) + (what.equals("inode") ? 1 : 0);
    if (what.equals("short")) {
      Files.write(segment, new byte[10]);
    }
    int slots = what.equals("slots") ? SLOTS + 1 : SLOTS;
    assertThatThrownBy(() -> SlotStore.map(opened(segment, bytes, inode, slots)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(segment + " is not the segment that the daemon made");
  }

  @Test
  void noneThatOthersMayReadOrThatIsALink() throws IOException {
    Path link = Files.createSymbolicLink(folder.resolve("link"), segment);
    Files.setPosixFilePermissions(segment, PosixFilePermissions.fromString("rw-r-----"));
    for (Path path : new Path[] {segment, link, folder}) {
      assertThatThrownBy(() -> SlotStore.map(opened(path, SLOTS * STRIDE, inode(segment), SLOTS)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining(path + " must be a file of this user alone");
    }
  }

  @Test
  void namesSayWhereABlockIs() {
    BlockIds ids = SlotStore.name(-2, 1L << 40, new int[] {5, -1});
    assertThat(ids.high(0)).isEqualTo(-2L << 32 | 5);
    assertThat(ids.low(1)).isEqualTo(1L << 40);
    assertThat((int) ids.high(1)).isEqualTo(-1);
    assertThat((int) (ids.high(1) >>> 32)).isEqualTo(-2);
  }
}

package ucm.platform.libc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What lies in place of a small file is read only when it is one. */
@Timeout(value = 1, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class SmallFileTest {

  @TempDir private Path directory;

  private final LibcFileOperations files = new LibcFileOperations();

  private byte[] read(Path file) {
    return SmallFile.read(files, NativePath.of(file.toString()), 64);
  }

  @Test
  void readsAFileUpToItsBound() throws Exception {
    byte[] text = "1 4096\n".getBytes(StandardCharsets.US_ASCII);
    assertThat(read(Files.write(directory.resolve("used"), text))).isEqualTo(text);
    assertThat(read(Files.write(directory.resolve("empty"), new byte[0]))).isEmpty();
    assertThat(read(Files.write(directory.resolve("most"), new byte[64]))).hasSize(64);
    assertThat(read(Files.write(directory.resolve("more"), new byte[65]))).isNull();
    assertThat(read(directory.resolve("absent"))).isNull();
  }

  @Test
  void readsNothingElse() throws Exception {
    Path fifo = directory.resolve("fifo");
    assertThat(new ProcessBuilder("mkfifo", fifo.toString()).start().waitFor()).isZero();
    assertThat(read(fifo)).isNull();
    Path file = Files.write(directory.resolve("file"), new byte[3]);
    assertThat(read(Files.createSymbolicLink(directory.resolve("link"), file))).isNull();
    assertThat(read(directory)).isNull();
    assertThat(read(Path.of("/dev/zero"))).isNull();
    Path huge = directory.resolve("huge");
    try (RandomAccessFile sparse = new RandomAccessFile(huge.toFile(), "rw")) {
      sparse.setLength(1L << 40);
    }
    assertThat(read(huge)).isNull();
  }

  /** The target of a link is outside of the tree. */
  @Test
  void foldersThatAreLinksAreRefused() throws Exception {
    Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
    Files.write(elsewhere.resolve("x"), new byte[3]);
    Path link = Files.createSymbolicLink(directory.resolve("link"), elsewhere);
    NativePath path = NativePath.of(link.toString());
    assertThatThrownBy(() -> files.makeFolder(path))
        .isInstanceOf(FileException.class)
        .hasMessageContaining("ENOTDIR")
        .hasMessageContaining(link.toString());
    assertThatThrownBy(() -> files.list(path)).hasMessageContaining("ENOTDIR");
    assertThat(files.list(NativePath.of(link + "/."))).containsExactly("x");
    assertThat(files.makeFolder(NativePath.of(elsewhere.toString()))).isFalse();
  }
}

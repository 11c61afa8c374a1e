package ucm.store.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A small file system of its own. It is mounted by a shell that waits for the end of its input and then
 * unmounts, so that it goes when the process of the test does, however that ends.
 */
final class SmallMount implements AutoCloseable {

  private static final Path MAKE_EXT4 = Path.of("/usr/sbin/mkfs.ext4");
  private static final String SCRIPT =
      """
      mount "$@" 2>&1 || exit 1
      echo mounted
      read nothing
      for directory; do :; done
      umount "$directory" || umount -l "$directory"
      """;

  /** Where it is mounted. */
  final Path directory;

  private final Process process;

  private SmallMount(Path directory, Process process) {
    this.directory = directory;
    this.process = process;
  }

  /** In memory; skips the test where that cannot be mounted. */
  static SmallMount tmpfs(Path directory, long bytes) throws IOException {
    return mount(directory, true, "-t", "tmpfs", "-o", "size=" + bytes, "tmpfs");
  }

  /**
   * An image of ext4 through a loop device; skips the test where that cannot be mounted.
   *
   * @param options for mount, separated by commas
   */
  static SmallMount ext4(Path directory, Path image, String options) throws IOException {
    return mount(directory, true, "-t", "ext4", "-o", "loop," + options, image.toString());
  }

  /** The same for an image that must be good, after its journal has been replayed. */
  static SmallMount recovered(Path directory, Path image) throws IOException {
    return mount(directory, false, "-t", "ext4", "-o", "loop", image.toString());
  }

  private static SmallMount mount(Path directory, boolean maySkip, String... what)
      throws IOException {
    Files.createDirectories(directory);
    ProcessBuilder builder = new ProcessBuilder("sh", "-c", SCRIPT, "sh");
    builder.command().addAll(List.of(what));
    builder.command().add(directory.toString());
    Process process = builder.start();
    String first = process.inputReader().readLine();
    if (maySkip && !"mounted".equals(first)) {
      abort("cannot mount file systems here, which takes root: " + first);
    }
    assertThat(first).as("mount %s", String.join(" ", what)).isEqualTo("mounted");
    return new SmallMount(directory, process);
  }

  /** Makes an empty file system in a file, which keeps what it holds elsewhere. */
  static void makeExt4(Path image, long bytes) throws Exception {
    assumeTrue(Files.isExecutable(MAKE_EXT4), "no mkfs.ext4: install Debian's e2fsprogs");
    try (RandomAccessFile file = new RandomAccessFile(image.toFile(), "rw")) {
      file.setLength(bytes);
    }
    Process process =
        new ProcessBuilder(
                MAKE_EXT4.toString(),
                "-q",
                "-F",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
                image.toString())
            .inheritIO()
            .start();
    assertThat(process.waitFor()).as("mkfs.ext4").isZero();
  }

  /** Unmounts. */
  @Override
  public void close() throws IOException {
    process.outputWriter().close();
    process.onExit().orTimeout(TestStores.PATIENCE.toSeconds(), TimeUnit.SECONDS).join();
  }
}

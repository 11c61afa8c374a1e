package ucm.store.posix;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;

/** Compiles the C program that tests need; skips the test where that cannot be done. */
final class CProgram {

  private static final Path COMPILER = Path.of("/usr/bin/gcc");
  private static final Path HEADERS = Path.of("/usr/include/fuse3");

  private CProgram() {}

  /** Compiles {@code sick_fs.c} into a folder. */
  static Path sickFs(Path folder) throws IOException, InterruptedException {
    assumeTrue(Files.isExecutable(COMPILER), "no compiler: install Debian's gcc and libc6-dev");
    assumeTrue(Files.isDirectory(HEADERS), "no FUSE headers: install Debian's libfuse3-dev");
    Path source = folder.resolve("sick_fs.c");
    try (InputStream text = CProgram.class.getResourceAsStream("sick_fs.c")) {
      Files.copy(Objects.requireNonNull(text), source);
    }
    Path program = folder.resolve("sick_fs");
    Process compiler =
        new ProcessBuilder(
                COMPILER.toString(),
                "-O1",
                "-Wall",
                "-D_FILE_OFFSET_BITS=64",
                "-I" + HEADERS,
                "-o",
                program.toString(),
                source.toString(),
                "-lfuse3",
                "-lpthread")
            .redirectErrorStream(true)
            .start();
    String said = new String(compiler.getInputStream().readAllBytes(), UTF_8);
    assertThat(compiler.waitFor()).as(said).isZero();
    return program;
  }
}

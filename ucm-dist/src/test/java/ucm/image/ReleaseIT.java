package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** docs/release.md: a folder gets all that is released, and an author of stores needs nothing else of UCM. */
@Tag("full")
class ReleaseIT {

  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
  private static final Path LOCAL = Path.of(System.getProperty("ucm.maven.repository"));
  private static final String OFFLINE = "offline true";
  private static final List<String> CHECKSUMS = List.of(".md5", ".sha1", ".sha256", ".sha512");

  @TempDir private Path folder;

  @Test
  void aFolderHasAllThatIsReleasedAndAPluginIsBuiltFromItAlone() throws Exception {
    Path released = folder.resolve("released");
    deploy(released);
    for (String module : List.of("ucm-api", "ucm-testkit", "ucm-pipeline", "ucm-metrics")) {
      requireOne(released, module, ".pom", ".jar", "-sources.jar", "-javadoc.jar");
    }
    requireOne(released, "ucm-bom", ".pom");
    requireOne(
        released, "ucm-dist", "-linux-x86_64.tar.gz", "-linux-x86_64.whl", "-cyclonedx.json");
    Path author = folder.resolve("author/ucm-store-hello");
    PublishedArtifacts.copyExample("ucm-store-hello", author);
    assertThat(maven(author, ownRepository(), settings(released), "package"))
        .containsPattern("Tests run: \\d+, Failures: 0, Errors: 0");
    assertThat(author.resolve("target/ucm-store-hello-1.0.jar")).isRegularFile();
  }

  private void deploy(Path released) throws Exception {
    Path checkout = folder.resolve("checkout");
    Process list = new ProcessBuilder("git", "ls-files", "-z").directory(ROOT.toFile()).start();
    String names = new String(list.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(list.waitFor()).isZero();
    for (String name : names.split("\0")) {
      Path file = ROOT.resolve(name);
      if (Files.isRegularFile(file)) {
        Files.createDirectories(checkout.resolve(name).getParent());
        Files.copy(file, checkout.resolve(name));
      }
    }
    String _ =
        maven(
            checkout,
            LOCAL,
            null,
            "-Prelease",
            "-DskipTests",
            "-Dmaven.test.skip=true",
            "-DaltDeploymentRepository=local::file:" + released,
            "-Daether.checksums.algorithms=SHA-512,SHA-256,SHA-1,MD5",
            "deploy");
  }

  /** Each file is there once, with its checksums. */
  private static void requireOne(Path released, String module, String... endings)
      throws IOException {
    try (Stream<Path> files =
        Files.list(
            released
                .resolve("dev/ucm")
                .resolve(module)
                .resolve(System.getProperty("ucm.version")))) {
      List<String> names = files.map(file -> file.getFileName().toString()).toList();
      for (String ending : endings) {
        List<String> found =
            names.stream()
                .filter(name -> name.endsWith(ending))
                .filter(name -> !ending.equals(".jar") || !name.matches(".*-(sources|javadoc).jar"))
                .toList();
        assertThat(found).as("%s%s of %s", module, ending, names).hasSize(1);
        CHECKSUMS.forEach(sum -> assertThat(names).contains(found.getFirst() + sum));
      }
    }
  }

  /** All that this machine has but UCM, so that nothing else is fetched twice. */
  private Path ownRepository() throws IOException {
    Path own = Files.createDirectories(folder.resolve("repository"));
    PublishedArtifacts.linkAllBut("dev", LOCAL, own);
    return own;
  }

  private Path settings(Path released) throws IOException {
    return Files.writeString(
        folder.resolve("settings.xml"),
        """
        <settings>
          <profiles>
            <profile>
              <id>released</id>
              <repositories>
                <repository>
                  <id>released</id>
                  <url>%s</url>
                </repository>
              </repositories>
            </profile>
          </profiles>
          <activeProfiles><activeProfile>released</activeProfile></activeProfiles>
        </settings>
        """
            .formatted(released.toUri()));
  }

  private String maven(Path project, Path repository, @Nullable Path settings, String... words)
      throws Exception {
    List<String> command =
        Stream.concat(
                Stream.of(
                    System.getProperty("ucm.maven.home") + "/bin/mvn",
                    "--batch-mode",
                    "--no-transfer-progress",
                    "-Dmaven.repo.local=" + repository,
                    "-Ducm.kills=4"),
                Stream.of(words))
            .collect(Collectors.toList());
    if (System.getProperty("ucm.maven.mode").equals(OFFLINE)) {
      command.addAll(List.of("--offline", "-Daether.offline.protocols=file"));
    }
    if (settings != null) {
      command.addAll(List.of("--settings", settings.toString()));
    }
    Path log = folder.resolve("maven.log");
    ProcessBuilder builder =
        new ProcessBuilder(command)
            .directory(project.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile());
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    int exitCode = builder.start().waitFor();
    String printed = Files.readString(log);
    assertThat(exitCode).as(printed).isZero();
    return printed;
  }
}

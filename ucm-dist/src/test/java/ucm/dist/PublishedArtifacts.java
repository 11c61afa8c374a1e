package ucm.dist;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A local Maven repository that has, of UCM, what an author of stores is given: the API and the test
 * kit as they were built just before, and nothing else. All other artifacts are those of this machine,
 * by links, so nothing is fetched twice and nothing of UCM gets into the repository of this machine.
 */
final class PublishedArtifacts {

  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
  private static final Path LOCAL = Path.of(System.getProperty("ucm.maven.repository"));
  private static final String VERSION = System.getProperty("ucm.version");

  private final Path repository;

  private PublishedArtifacts(Path repository) {
    this.repository = repository;
  }

  static PublishedArtifacts in(Path folder) throws IOException {
    Path dev = Files.createDirectories(folder.resolve("dev"));
    linkAllBut("dev", LOCAL, folder);
    if (Files.exists(LOCAL.resolve("dev"))) {
      linkAllBut("ucm", LOCAL.resolve("dev"), dev);
    }
    PublishedArtifacts published = new PublishedArtifacts(folder);
    published.add("ucm-parent", ROOT.resolve("pom.xml"), "pom");
    for (String module : List.of("ucm-api", "ucm-testkit")) {
      published.add(module, ROOT.resolve(module).resolve("pom.xml"), "pom");
      published.add(
          module, ROOT.resolve("%s/target/%s-%s.jar".formatted(module, module, VERSION)), "jar");
    }
    return published;
  }

  private static void linkAllBut(String name, Path from, Path to) throws IOException {
    try (Stream<Path> children = Files.list(from)) {
      for (Path child : (Iterable<Path>) children::iterator) {
        if (!child.endsWith(name)) {
          Files.createSymbolicLink(to.resolve(child.getFileName()), child);
        }
      }
    }
  }

  private void add(String artifact, Path file, String type) throws IOException {
    Path folder =
        Files.createDirectories(repository.resolve("dev/ucm").resolve(artifact).resolve(VERSION));
    Files.copy(file, folder.resolve(artifact + "-" + VERSION + "." + type));
  }

  /** Copies an example to a folder of its own, far from UCM's sources, and runs `mvn verify` there. */
  Path build(String example, Path folder) throws IOException {
    Path copy = folder.resolve(example);
    for (String part : List.of("pom.xml", "src")) {
      copy(ROOT.resolve("examples").resolve(example).resolve(part), copy.resolve(part));
    }
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("ucm.maven.home"), "bin", "mvn").toString());
    command.addAll(List.of("--batch-mode", "--no-transfer-progress"));
    if (System.getProperty("ucm.maven.mode").equals("offline true")) {
      command.add("--offline");
    }
    command.addAll(List.of("-Dmaven.repo.local=" + repository, "-Ducm.kills=4", "verify"));
    ProcessBuilder maven = new ProcessBuilder(command);
    maven.directory(copy.toFile());
    Map<String, String> environment = maven.environment();
    environment.put("JAVA_HOME", System.getProperty("java.home"));
    environment.remove("MAVEN_OPTS");
    UcmProcess.Ended ended = UcmProcess.finish(maven.start());
    assertThat(ended.exitCode()).as(ended.all()).isZero();
    assertThat(ended.out()).containsPattern("Tests run: \\d{2,}, Failures: 0, Errors: 0");
    return copy;
  }

  /** Copies a file, or a folder with what is in it. */
  static void copy(Path from, Path to) throws IOException {
    Files.createDirectories(to.getParent());
    try (Stream<Path> files = Files.walk(from)) {
      for (Path file : (Iterable<Path>) files::iterator) {
        Files.copy(file, to.resolve(from.relativize(file).toString()));
      }
    }
  }
}

package ucm.image;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;

/**
 * A local Maven repository that has, of UCM, what an author of stores is given: the API, the test kit, and
 * the stages to test one below, as they were built just before, and nothing else. All other artifacts are those
 * of this machine, by links, so nothing is fetched twice and nothing of UCM gets into the repository of this
 * machine.
 */
final class PublishedArtifacts {

  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();
  private static final Path LOCAL = Path.of(System.getProperty("ucm.maven.repository"));
  private static final String VERSION = System.getProperty("ucm.version");

  private static final List<String> MODULES =
      List.of(
          "ucm-api",
          "ucm-testkit",
          "ucm-device",
          "ucm-platform",
          "ucm-lite",
          "ucm-pipeline",
          "ucm-store-cache",
          "ucm-store-file",
          "ucm-store-posix");

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
    published.add("ucm-bom", ROOT.resolve("ucm-bom/pom.xml"), "pom");
    for (String module : MODULES) {
      published.add(module, ROOT.resolve(module).resolve("pom.xml"), "pom");
      published.add(
          module, ROOT.resolve("%s/target/%s-%s.jar".formatted(module, module, VERSION)), "jar");
    }
    return published;
  }

  static void linkAllBut(String name, Path from, Path to) throws IOException {
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

  /** Makes a folder with a command {@code mvn} that builds from this repository. */
  Path maven(Path folder) throws IOException {
    String mode = System.getProperty("ucm.maven.mode").equals("offline true") ? "--offline" : "";
    Path mvn = Files.createDirectories(folder).resolve("mvn");
    Files.writeString(
        mvn,
        """
        #!/bin/sh
        export MAVEN_OPTS='%s'
        JAVA_HOME='%s' exec '%s/bin/mvn' --batch-mode --no-transfer-progress %s \\
          -Dmaven.repo.local='%s' -Ducm.kills=4 "$@"
        """
            .formatted(
                UcmProcess.JAVA_OPTIONS,
                System.getProperty("java.home"),
                System.getProperty("ucm.maven.home"),
                mode,
                repository));
    Files.setPosixFilePermissions(mvn, PosixFilePermissions.fromString("rwxr-xr-x"));
    return folder;
  }

  /** Copies what an example's author writes to a folder far from UCM's sources. */
  static void copyExample(String example, Path to) throws IOException {
    for (String part : List.of("pom.xml", "src")) {
      FileTree.copy(ROOT.resolve("examples").resolve(example).resolve(part), to.resolve(part));
    }
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A reader who follows a page of the documentation: types its commands into a shell and makes the files it
 * shows, in a folder where {@code ./ucm}, {@code bin/ucm} and {@code ucm} are that of an image. What the page
 * has below /mnt and /tmp is below this folder; all else is as it is printed.
 */
final class DocsReader {

  private static final Path ROOT = Path.of("..").toAbsolutePath().normalize();

  /** Commands that are not run here, by page, and why. */
  static final Map<String, Map<String, String>> LEFT_OUT =
      Map.of(
          "README.md",
          Map.of(
              "mvn verify",
              "is what runs this test",
              "mvn -q test -Pfast",
              "this test is part of a build"),
          "docs/image.md",
          Map.of(
              "mvn -pl ucm-dist -am package -Dmaven.test.skip=true",
              "would replace the image while it is tested",
              "sha256sum ucm-dist/target/*.tar.gz ucm-dist/target/*.whl",
              "there is no archive where the build skips it (-Dassembly.skipAssembly)"),
          "docs/operations.md",
          Map.of(
              "ucm store rm --config ucm.yaml 00169261cf68af7335b95483438344a5",
              "needs a block of that id; BlockRemovalTest removes blocks",
              "ucm store rm --config ucm.yaml --all ids.txt --yes",
              "needs a list of ids; BlockRemovalTest removes blocks"),
          "docs/plugins.md",
          Map.of(
              "mvn -Prelease -DskipTests -pl ucm-bom,ucm-testkit -am install",
              "would change this machine's repository; PublishedArtifacts makes one like it"));

  private final Path folder;
  private final Map<String, String> environment;
  private Path workingDirectory;

  /**
   * @param folder empty, or not there
   * @param image whose {@code bin/ucm} it is
   * @param environment what the shell knows besides; a {@code PATH} in it comes first
   */
  DocsReader(Path folder, Path image, Map<String, String> environment) throws IOException {
    this.folder = Files.createDirectories(folder).toRealPath();
    this.workingDirectory = Files.createDirectories(this.folder.resolve("work"));
    Path bin = Files.createDirectories(workingDirectory.resolve("bin"));
    for (Path ucm : List.of(workingDirectory.resolve("ucm"), bin.resolve("ucm"))) {
      Files.writeString(ucm, "#!/bin/sh\nexec '%s/bin/ucm' \"$@\"\n".formatted(image.toRealPath()));
      Files.setPosixFilePermissions(ucm, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
    Files.createDirectories(this.folder.resolve("mnt"));
    Files.createDirectories(this.folder.resolve("tmp"));
    this.environment =
        new HashMap<>(
            Map.of(
                "JAVA_HOME",
                "/nowhere",
                "HOME",
                folder.toString(),
                "UCM_JAVA_OPTS",
                UcmProcess.JAVA_OPTIONS));
    this.environment.putAll(environment);
    this.environment.merge("PATH", bin + ":/usr/bin:/bin", (first, others) -> first + ":" + others);
  }

  /** Where the next block is followed; a block may change it. */
  Path workingDirectory() {
    return workingDirectory;
  }

  /** What is there before the page is read. */
  void prepare(String script) throws IOException {
    run(moved(script)).requireOk();
  }

  /** Does what a block says; nothing where it only shows something. Returns what commands printed. */
  String follow(DocsBlock block) throws IOException {
    if (block.told("file").isPresent()) {
      Path file = workingDirectory.resolve(block.told("file").get());
      Files.writeString(file, moved(block.shortened(block.text())));
    }
    if (block.told("part of").isPresent()) {
      Path file = ROOT.resolve(block.told("part of").get());
      assertThat(block.isPartOf(file)).as("%s is a part of %s", block, file).isTrue();
    }
    if (block.text().startsWith("ucm_connector")) {
      Path file = Files.writeString(folder.resolve("checked.yaml"), moved(block.text()));
      UcmProcess.Ended check = run("ucm config check " + file + "\n");
      assertThat(check.exitCode()).as("%s%n%s", block, check.all()).isZero();
    }
    Map<String, String> leftOut = LEFT_OUT.getOrDefault(block.page(), Map.of());
    String script =
        block.commands().stream()
            .filter(command -> !leftOut.containsKey(command))
            .map(command -> moved(block.shortened(command)))
            .collect(Collectors.joining("\n", "", "\n"));
    if (script.isBlank()) {
      return "";
    }
    UcmProcess.Ended ended = run(script);
    assertThat(ended.exitCode())
        .as("%s%n%s", block, ended.all())
        .isEqualTo(block.told("exit").map(Integer::valueOf).orElse(0));
    assertThat(ended.all()).as("%s", block).doesNotContain("\tat ", "should not happen");
    return ended.out();
  }

  private String moved(String text) {
    return text.replaceAll("(?<![\\w.])/(mnt|tmp)/", folder + "/$1/");
  }

  /** Runs it to its first failure; a {@code cd} holds for what comes next. */
  private UcmProcess.Ended run(String script) throws IOException {
    Path where = folder.resolve("where");
    // Each command is told on the standard error, so that one sees which one failed.
    ProcessBuilder shell = new ProcessBuilder("/bin/sh", "-eux", "-c", script + "pwd -P >" + where);
    shell.directory(workingDirectory.toFile());
    shell.environment().clear();
    shell.environment().putAll(environment);
    UcmProcess.Ended ended = UcmProcess.finish(shell.start());
    if (ended.exitCode() == 0) {
      workingDirectory = Path.of(Files.readString(where).strip());
    }
    return ended;
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The runtime image as it is shipped. */
class ImageSmokeIT {

  @TempDir private Path folder;

  @Test
  void runsWithoutAnyJavaOnThePath() {
    UcmProcess.Ended version = UcmProcess.run("--version").requireOk();
    assertThat(version.out()).matches("ucm \\d+\\.\\d+\\.\\d+.*\\s*");
  }

  @Test
  void startsFromItsArchiveWhereverItLies() throws Exception {
    Path image = folder.resolve("elsewhere");
    FileTree.copy(UcmProcess.IMAGE, image);
    Process java =
        new ProcessBuilder(
                image.resolve("bin/java").toString(),
                // Fails where the archive does not fit.
                "-Xshare:on",
                "-Xlog:cds,class+load",
                "-m",
                "ucm.cli/ucm.cli.Main",
                "--version")
            .start();
    UcmProcess.Ended version = UcmProcess.finish(java).requireOk();
    assertThat(version.out())
        .contains("use_full_module_graph = true", "ucm.cli.Main source: shared objects file")
        .doesNotContain("source: jrt:", "source: __");
  }

  @Test
  void anotherBuildWouldMakeTheSameArchive() throws Exception {
    Path image = folder.resolve("again");
    FileTree.copy(UcmProcess.IMAGE, image);
    Path archive = Path.of("lib/server/classes_coh.jsa");
    Files.delete(image.resolve(archive));
    Process build =
        new ProcessBuilder("/bin/sh", "src/main/startup/archive", image.toString()).start();
    UcmProcess.finish(build).requireOk();
    assertThat(Files.mismatch(image.resolve(archive), UcmProcess.IMAGE.resolve(archive)))
        .as("first byte that differs")
        .isEqualTo(-1);
  }

  @Test
  void movesItsFirstBlocksByClassesOfItsArchive() throws IOException {
    Path config = folder.resolve("ucm.yaml");
    Files.writeString(
        config,
        Files.readString(Path.of("src/main/startup/config.yaml"))
            .replace("/nowhere", folder.resolve("data").toString()));
    Path log = folder.resolve("loaded");
    String options = UcmProcess.JAVA_OPTIONS + " -Xlog:class+load:file=" + log;
    String[] tiny =
        "--blocks 4 --task-blocks 2 --lookups 16 --repeat 1 --warmup 0 --buffer-gb 0.05".split(" ");
    UcmProcess.Ended ended =
        UcmProcess.finish(
            UcmProcess.start(
                UcmProcess.IMAGE,
                Map.of("UCM_JAVA_OPTS", options),
                Stream.of(
                        Stream.of("bench", "store", "--config", config, "--block-size", 1 << 20),
                        Stream.of(tiny))
                    .flatMap(words -> words)
                    .toArray()));
    assertThat(ended.exitCode()).as(ended.all()).isZero();
    List<String> ours =
        Files.readAllLines(log).stream()
            .filter(line -> line.matches(".*ucm\\.(api|pipeline|platform|store)\\..*"))
            .toList();
    List<String> elsewhere =
        ours.stream().filter(line -> !line.endsWith("source: shared objects file")).toList();
    assertThat(ours).hasSizeGreaterThan(300);
    // A few are loaded by chance, or are newer than the list.
    assertThat(elsewhere.size())
        .as(
            "Too much is loaded from elsewhere; renew the list by `src/main/startup/archive --list"
                + " target/image > src/main/startup/moving`, and build again: %s",
            elsewhere)
        .isLessThan(ours.size() / 10);
  }

  @Test
  void goesOnWithoutItsArchiveAndSaysNothing() {
    Map<String, String> other = Map.of("UCM_JAVA_OPTS", "-XX:-UseCompressedOops");
    UcmProcess.Ended version =
        UcmProcess.finish(UcmProcess.start(UcmProcess.IMAGE, other, "--version")).requireOk();
    assertThat(version.all()).matches("ucm \\S+\\s*");
  }

  @Test
  void saysWhatItIsMadeOf() throws IOException {
    Path legal = UcmProcess.IMAGE.resolve("legal/ucm");
    JsonNode sbom = JsonMapper.builder().build().readTree(legal.resolve("sbom.json").toFile());
    assertThat(sbom.get("bomFormat").asString()).isEqualTo("CycloneDX");
    assertThat(sbom.get("components").findValuesAsString("name"))
        .contains("jna-jpms", "logback-classic", "jackson-dataformat-yaml", "jcuda")
        .contains("prometheus-metrics-core", "prometheus-metrics-exposition-textformats");
    assertThat(Files.readString(legal.resolve("THIRD-PARTY.txt")))
        .contains("jna-jpms", "logback-classic", "prometheus-metrics-core")
        .doesNotContain("Unknown license");
  }

  @Test
  void takesNoMoreThan110Mebibytes() throws IOException {
    try (Stream<Path> files = Files.walk(UcmProcess.IMAGE)) {
      long bytes =
          files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
      assertThat(bytes).isBetween(1L << 20, 110L << 20);
    }
  }

  @Test
  void listsTheStoresItShips() {
    UcmProcess.Ended stores = UcmProcess.run("stores").requireOk();
    assertThat(stores.out())
        .contains("ucm.store.cache", "ucm.store.posix", "ucm.store.nfs", "ucm.store.fake");
    JsonNode json = UcmProcess.run("stores", "--json").json();
    assertThat(json.get("stores").findValuesAsString("name"))
        .containsExactlyInAnyOrder("Cache", "Posix", "Nfs", "Ds3fs", "S3", "Fake", "Empty");
    assertThat(json.get("problems")).isEmpty();
  }

  @Test
  void whatItsUnitsNameIsInIt() throws IOException {
    for (String unit : List.of("ucm@.service", "ucm-serve@.service")) {
      List<String> named =
          Files.readAllLines(UcmProcess.IMAGE.resolve("share/systemd").resolve(unit)).stream()
              .filter(line -> line.matches("(Documentation=file:|ExecStart=)/opt/ucm/.*"))
              .map(line -> line.replaceFirst("^[^/]*/opt/ucm/", "").replaceFirst(" .*", ""))
              .toList();
      assertThat(named).hasSize(2);
      named.forEach(path -> assertThat(UcmProcess.IMAGE.resolve(path)).isRegularFile());
    }
  }

  /** As a shell does it: bash itself, on what the image has for it. */
  @Test
  void completesCommandsAndOptionsInBash() throws Exception {
    Process bash =
        new ProcessBuilder(
                "bash",
                "-c",
                "source share/completion/ucm.bash; COMP_WORDS=(ucm trace repl); COMP_CWORD=2;"
                    + " _complete_ucm; echo ${COMPREPLY[@]};"
                    + " COMP_WORDS=(ucm trace stat --js); COMP_CWORD=3; _complete_ucm;"
                    + " echo ${COMPREPLY[@]}")
            .directory(UcmProcess.IMAGE.toFile())
            .start();
    UcmProcess.Ended completed = UcmProcess.finish(bash);
    assertThat(completed.out().lines()).as(completed.all()).containsExactly("replay", "--json");
    assertThat(UcmProcess.IMAGE.resolve("share/completion/ucm.zsh")).isNotEmptyFile();
  }

  @Test
  void explainsTheCommandsOfEachModule() {
    for (List<String> command :
        List.of(List.<String>of(), List.of("bench", "store"), List.of("serve"))) {
      UcmProcess.Ended help =
          UcmProcess.run(Stream.concat(command.stream(), Stream.of("--help")).toArray())
              .requireOk();
      assertThat(help.out()).startsWith("Usage: ucm").contains("--help");
    }
  }

  @Test
  void answersWrongUsageWithTwoAndAHint() {
    UcmProcess.Ended wrong = UcmProcess.run("demo", "--promts", "3");
    assertThat(wrong.exitCode()).isEqualTo(2);
    assertThat(wrong.err()).contains("--promts", "--prompts", "ucm demo --help");
    assertThat(UcmProcess.run().exitCode()).isEqualTo(2);
  }

  @Test
  void reportsABrokenPluginAndGoesOn() throws IOException {
    Path plugins = Files.createDirectories(folder.resolve("plugins"));
    Files.writeString(plugins.resolve("broken.jar"), "this is no jar");
    UcmProcess.Ended stores = UcmProcess.run("stores", "--plugins", plugins).requireOk();
    assertThat(stores.out()).contains("Posix", "broken.jar");
    assertThat(stores.all()).as("the problem, once").containsOnlyOnce("is no jar");
    assertThat(stores.all()).doesNotContain("Exception");
  }
}

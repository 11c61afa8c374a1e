package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import acme.app.ListStores;
import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.pipeline.config.Resources;

/** What a program of its own finds, with UCM among its modules and on its class path. */
class StartedProgramTest {

  private static final Set<String> MODULES =
      Set.of(
          "ucm.lite",
          "ucm.platform",
          "ucm.device",
          "com.sun.jna",
          "com.carrotsearch.hppc",
          "ucm.api",
          "ucm.pipeline",
          "org.slf4j",
          "org.snakeyaml.engine",
          "tools.jackson.core",
          "tools.jackson.databind",
          "tools.jackson.dataformat.yaml",
          "com.fasterxml.jackson.annotation");

  @TempDir Path temp;
  private Path plugins;
  private Path tape;

  @BeforeEach
  void makesAStore() throws IOException {
    plugins = Files.createDirectory(temp.resolve("plugins"));
    PluginJars jars = new PluginJars(temp.resolve("work"));
    Path classes = jars.classes(PluginJars.store("acme.tape", "TapeStore", "Tape"));
    Path services = Files.createDirectories(classes.resolve("META-INF/services"));
    Files.writeString(services.resolve("ucm.api.Store"), "acme.tape.TapeStore\n");
    tape = jars.jar(temp.resolve("tape.jar"), classes);
  }

  @Test
  void findsStoresAmongItsModulesWhichKeepTheirNamesFromPlugins() throws Exception {
    Path plugin = Files.copy(tape, plugins.resolve("tape.jar"));
    String modules = path(modules()) + File.pathSeparator + tape;
    List<String> lines =
        run("-p", modules, "--add-modules", "ucm.pipeline,acme.tape", "-cp", tests().toString());
    assertThat(lines)
        .contains(
            "modules of UCM",
            "StoreEntry[name=Tape, module=acme.tape, version=1.2.3, location=%s, problems=[]]"
                .formatted(tape),
            plugin
                + ": Tape: the name Tape is taken twice: by acme.tape.TapeStore in "
                + plugin
                + " and by acme.tape.TapeStore in "
                + tape
                + "; remove one")
        .endsWith("Tape");
  }

  @Test
  void findsStoresOnItsClassPathAndRefusesPluginsThere() throws Exception {
    Files.copy(tape, plugins.resolve("other.jar"));
    List<Path> classPath = new ArrayList<>(modules());
    classPath.add(tape);
    classPath.add(tests());
    assertThat(run("-cp", path(classPath)))
        .containsExactly(
            "class path",
            "StoreEntry[name=, module=, version=, location=%s, problems=[%s]]"
                .formatted(plugins.resolve("other.jar"), REFUSAL),
            "StoreEntry[name=Tape, module=, version=, location=%s, problems=[]]".formatted(tape),
            plugins.resolve("other.jar") + ": " + REFUSAL,
            "Tape");
  }

  private static final String REFUSAL =
      "is not loaded: plugins need UCM on the module path, and it is on the class path";

  private List<String> run(String... options) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-XX:TieredStopAtLevel=1");
    command.addAll(List.of(options));
    command.add(ListStores.class.getName());
    command.add(plugins.toString());
    Path errors = temp.resolve("errors");
    Process process = new ProcessBuilder(command).redirectError(errors.toFile()).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as("%s%n%s", command, Files.readString(errors)).isZero();
    return output.lines().toList();
  }

  private static List<Path> modules() {
    return ModuleLayer.boot().configuration().modules().stream()
        .filter(module -> MODULES.contains(module.name()))
        .flatMap(module -> module.reference().location().stream())
        .map(Path::of)
        .toList();
  }

  /** The folder of the compiled tests. */
  private static Path tests() throws URISyntaxException {
    Path resource = Path.of(Resources.class.getResource("seeds/nfs_store.yaml").toURI());
    return resource.getParent().getParent().getParent().getParent().getParent();
  }

  private static String path(List<Path> paths) {
    return paths.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
  }
}

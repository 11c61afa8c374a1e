package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import ucm.api.Store;

/** Which version of a library a plugin sees. */
class PluginLibraryTest extends PluginTest {

  /** A library with a class that tells a text. */
  private Path library(String jar, String module, String text, String version) throws IOException {
    return jars.jar(
        plugins.resolve(jar),
        jars.classes(
            Map.of(
                "module-info.java",
                "module %1$s { exports %1$s; }".formatted(module),
                "Told.java",
                told(module, text))),
        version);
  }

  private static String told(String packageName, String text) {
    return "package %s; public class Told { public static String get() { return \"%s\"; } }"
        .formatted(packageName, text);
  }

  /** A store that requires a module, and that names itself by an expression. */
  private void store(String jar, String name, String required, String tells, Path library)
      throws IOException {
    Map<String, String> sources =
        PluginJars.store(
            "acme.store",
            "TheStore",
            name,
            "requires " + required + ";",
            "public String toString() { return " + tells + "; }");
    jars.jar(plugins.resolve(jar), jars.classes(sources, library), "2");
  }

  @Test
  void eachPluginSeesItsOwnVersionOfALibrary() throws IOException {
    for (String version : List.of("1", "2")) {
      String folder = "v" + version;
      Path library = library(folder + "/library.jar", "acme.library", version, version);
      store(folder + "/s.jar", "V" + version, "acme.library", "acme.library.Told.get()", library);
    }
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(catalog.create("V1")).hasToString("1");
    assertThat(catalog.create("V2")).hasToString("2");
    assertThat(catalog.entry("V2").orElseThrow().version()).isEqualTo("2");
  }

  /** The parent has a module of this name too (it is loaded with the tests). */
  @Test
  void aPluginSeesItsOwnVersionOfALibraryThatTheParentHas() throws IOException {
    Path library = library("log/slf4j.jar", "org.slf4j", "private", "1");
    store("log/store.jar", "Logging", "org.slf4j", "org.slf4j.Told.get()", library);
    assertThat(find().create("Logging")).hasToString("private");
  }

  @Test
  void aPluginUsesALibraryOfTheParentWhenItBringsNone() throws IOException {
    Path slf4j =
        Path.of(
            ModuleLayer.boot()
                .configuration()
                .findModule("org.slf4j")
                .flatMap(module -> module.reference().location())
                .orElseThrow());
    String tells = "org.slf4j.Logger.class.getModule().toString()";
    store("log.jar", "Logging", "org.slf4j", tells, slf4j);
    assertThat(find().create("Logging")).hasToString("module org.slf4j");
  }

  @Test
  void aCopyOfTheApiInAPluginIsPassedOver() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.copy", "Copy", "Copy"));
    jars.jar(plugins.resolve("copy/store.jar"), classes);
    Path api = Path.of(PluginJars.api());
    if (Files.isDirectory(api)) {
      jars.jar(plugins.resolve("copy/ucm-api.jar"), api);
    } else {
      Files.copy(api, plugins.resolve("copy/ucm-api.jar"));
    }
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).isEmpty();
    assertThat(catalog.create("Copy")).isInstanceOf(Store.class);
  }

  @Test
  void aLibraryOfAPluginMayBeAPlainJar() throws IOException {
    Path classes = jars.plainClasses(Map.of("Told.java", told("acme.plainlib", "plain")));
    Path library = jars.jar(plugins.resolve("mix/plainlib.jar"), classes);
    store("mix/store.jar", "Mixed", "plainlib", "acme.plainlib.Told.get()", library);
    assertThat(find().problems()).isEmpty();
    assertThat(find().create("Mixed")).hasToString("plain");
  }
}

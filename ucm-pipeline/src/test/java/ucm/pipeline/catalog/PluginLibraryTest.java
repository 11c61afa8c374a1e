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

  @Test
  void eachPluginSeesItsOwnVersionOfALibrary() throws IOException {
    for (String version : List.of("1", "2")) {
      Path library =
          jars.jar(
              plugins.resolve("v" + version + "/library.jar"),
              jars.classes(
                  Map.of(
                      "module-info.java",
                      "module acme.library { exports acme.library; }",
                      "Version.java",
                      "package acme.library; public class Version {"
                          + " public static String get() { return \""
                          + version
                          + "\"; } }")),
              version);
      Path store =
          jars.classes(
              Map.of(
                  "module-info.java",
                  "module acme.store { requires ucm.api; requires acme.library;"
                      + " provides ucm.api.Store with acme.store.VersionedStore; }",
                  "VersionedStore.java",
                  PluginJars.storeClass(
                      "acme.store",
                      "VersionedStore",
                      "V" + version,
                      "public String toString() { return acme.library.Version.get(); }")),
              library);
      jars.jar(plugins.resolve("v" + version + "/store.jar"), store, version);
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
    Path library =
        jars.jar(
            plugins.resolve("log/slf4j.jar"),
            jars.classes(
                Map.of(
                    "module-info.java",
                    "module org.slf4j { exports org.slf4j; }",
                    "LoggerFactory.java",
                    "package org.slf4j; public class LoggerFactory {"
                        + " public static String mine() { return \"private\"; } }")));
    Path store =
        jars.classes(
            Map.of(
                "module-info.java",
                "module acme.store { requires ucm.api; requires org.slf4j;"
                    + " provides ucm.api.Store with acme.store.LoggingStore; }",
                "LoggingStore.java",
                PluginJars.storeClass(
                    "acme.store",
                    "LoggingStore",
                    "Logging",
                    "public String toString() { return org.slf4j.LoggerFactory.mine(); }")),
            library);
    jars.jar(plugins.resolve("log/store.jar"), store);
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
    Path store =
        jars.classes(
            Map.of(
                "module-info.java",
                "module acme.store { requires ucm.api; requires org.slf4j;"
                    + " provides ucm.api.Store with acme.store.LoggingStore; }",
                "LoggingStore.java",
                PluginJars.storeClass(
                    "acme.store",
                    "LoggingStore",
                    "Logging",
                    "public String toString() {"
                        + " return org.slf4j.Logger.class.getModule().toString(); }")),
            slf4j);
    jars.jar(plugins.resolve("log.jar"), store);
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
    Path library =
        jars.jar(
            plugins.resolve("mix/plainlib.jar"),
            jars.plainClasses(
                Map.of(
                    "Plain.java",
                    "package acme.plainlib; public class Plain {"
                        + " public static String get() { return \"plain\"; } }")));
    Path store =
        jars.classes(
            Map.of(
                "module-info.java",
                "module acme.store { requires ucm.api; requires plainlib;"
                    + " provides ucm.api.Store with acme.store.MixedStore; }",
                "MixedStore.java",
                PluginJars.storeClass(
                    "acme.store",
                    "MixedStore",
                    "Mixed",
                    "public String toString() { return acme.plainlib.Plain.get(); }")),
            library);
    jars.jar(plugins.resolve("mix/store.jar"), store);
    assertThat(find().problems()).isEmpty();
    assertThat(find().create("Mixed")).hasToString("plain");
  }
}

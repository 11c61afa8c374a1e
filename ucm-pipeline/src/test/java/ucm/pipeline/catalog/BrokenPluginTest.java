package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;

/** Every way for a plugin to be broken, and what the user reads about it. */
class BrokenPluginTest extends PluginTest {

  @Test
  void aFileThatIsNoZipIsAProblem() throws IOException {
    Files.writeString(plugins.resolve("text.jar"), "this is no zip");
    assertThat(onlyProblem()).startsWith("text.jar: is no jar that can be read: ");
  }

  @Test
  void aPipeThatIsNamedAsAJarIsAProblem() throws IOException, InterruptedException {
    Path pipe = plugins.resolve("pipe.jar");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    assertThat(onlyProblem()).isEqualTo("pipe.jar: is no regular file");
  }

  @Test
  void aJarThatIsCutOffIsAProblem() throws IOException {
    Path jar = plugin("tape.jar", PluginJars.store("acme.tape", "TapeStore", "Tape"));
    byte[] bytes = Files.readAllBytes(jar);
    Files.write(jar, Arrays.copyOf(bytes, bytes.length / 2));
    assertThat(onlyProblem()).startsWith("tape.jar: is no jar that can be read: ");
  }

  @Test
  void aJarThatIsNoModuleIsAProblem() throws IOException {
    Path classes = jars.plainClasses(Map.of("A.java", "package acme.plain; public class A {}"));
    jars.jar(plugins.resolve("plain.jar"), classes);
    assertThat(onlyProblem()).isEqualTo("plain.jar: is no module: it has no module-info.class");
  }

  @Test
  void aStoreOfAJarThatIsNoModuleIsAProblem() throws IOException {
    Path classes =
        jars.plainClasses(Map.of("Old.java", PluginJars.storeClass("acme.old", "Old", "Old")));
    Path services = Files.createDirectories(classes.resolve("META-INF/services"));
    Files.writeString(services.resolve("ucm.api.Store"), "acme.old.Old\n");
    jars.jar(plugins.resolve("old.jar"), classes);
    assertThat(onlyProblem())
        .isEqualTo(
            "old.jar: names a store or a block hasher in META-INF/services but is no module; add a"
                + " module-info");
  }

  @Test
  void aModuleWithoutAStoreIsAProblem() throws IOException {
    plugin("empty.jar", Map.of("module-info.java", "module acme.empty {}"));
    assertThat(onlyProblem())
        .isEqualTo(
            "empty.jar: has no store: no module in it says \"provides ucm.api.Store with ...\"");
  }

  @Test
  void aMissingDependencyIsAProblem() throws IOException {
    Path library = jars.classes(Map.of("module-info.java", "module acme.library { }"));
    Path classes =
        jars.classes(
            PluginJars.store("acme.needy", "Needy", "Needy", "requires acme.library;", ""),
            library);
    jars.jar(plugins.resolve("needy.jar"), classes);
    assertThat(onlyProblem())
        .isEqualTo(
            "needy.jar: does not fit together: Module acme.library not found, required by"
                + " acme.needy");
  }

  @Test
  void aNewerJavaIsAProblem() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.next", "Next", "Next"));
    setMajorVersion(classes.resolve("module-info.class"), 44 + 99);
    // The jar tool would read the module-info; a jar is only a zip.
    zip(plugins.resolve("next.jar"), classes);
    assertThat(onlyProblem())
        .isEqualTo(
            "next.jar: is compiled for Java 99, this is Java " + Runtime.version().feature());
  }

  @Test
  void aStoreClassForANewerJavaIsAProblem() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.next", "Next", "Next"));
    setMajorVersion(classes.resolve("acme/next/Next.class"), 44 + 99);
    zip(plugins.resolve("next.jar"), classes);
    assertThat(onlyProblem())
        .startsWith("next.jar: Unable to load acme.next.Next")
        .contains("more recent version of the Java Runtime");
  }

  @Test
  void aDamagedModuleInfoIsAProblem() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.bad", "Bad", "Bad"));
    Files.writeString(classes.resolve("module-info.class"), "no class file at all");
    zip(plugins.resolve("bad.jar"), classes);
    assertThat(onlyProblem()).isEqualTo("bad.jar: its module-info.class is no class file");
  }

  @Test
  void aMissingStoreClassIsAProblem() throws IOException {
    Path classes =
        jars.classes(
            Map.of(
                "module-info.java",
                "module acme.gone { requires ucm.api; provides ucm.api.Store with acme.gone.Gone;"
                    + " }",
                "Gone.java",
                PluginJars.storeClass("acme.gone", "Gone", "Gone"),
                "Other.java",
                "package acme.gone; class Other {}"));
    Files.delete(classes.resolve("acme/gone/Gone.class"));
    zip(plugins.resolve("gone.jar"), classes);
    assertThat(onlyProblem()).startsWith("gone.jar: Provider acme.gone.Gone not found");
  }

  @Test
  void aStoreWithoutAPublicConstructorIsAProblem() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.shy", "Shy", "Shy"));
    Path other =
        jars.plainClasses(
            Map.of(
                "Shy.java", PluginJars.storeClass("acme.shy", "Shy", "Shy", "Shy(int needed) {}")));
    Files.copy(
        other.resolve("acme/shy/Shy.class"),
        classes.resolve("acme/shy/Shy.class"),
        StandardCopyOption.REPLACE_EXISTING);
    jars.jar(plugins.resolve("shy.jar"), classes);
    assertThat(onlyProblem()).startsWith("shy.jar: acme.shy.Shy Unable to get public no-arg con");
  }

  @Test
  void aStoreWithoutANameIsAProblem() throws IOException {
    plugin(
        "anon.jar",
        Map.of(
            "module-info.java",
            "module acme.anon { requires ucm.api; provides ucm.api.Store with acme.anon.Anon; }",
            "Anon.java",
            PluginJars.storeClass("acme.anon", "Anon", "x").replace("@StoreName(\"x\")", "")));
    assertThat(onlyProblem())
        .isEqualTo("anon.jar: acme.anon.Anon: has no @StoreName, so it has no name");
  }

  @Test
  void aStoreWithABadNameIsAProblem() throws IOException {
    plugin("bad.jar", PluginJars.store("acme.bad", "Bad", "a|b"));
    assertThat(onlyProblem())
        .isEqualTo(
            "bad.jar: acme.bad.Bad: its @StoreName is \"a|b\"; a name is a letter, then up to 63"
                + " letters, digits, '_' or '-'");
  }

  @Test
  void oneModuleTwiceInAPluginIsAProblem() throws IOException {
    Path classes = jars.classes(PluginJars.store("acme.tape", "TapeStore", "Tape"));
    jars.jar(plugins.resolve("tape/a.jar"), classes, "1");
    jars.jar(plugins.resolve("tape/b.jar"), classes, "2");
    assertThat(onlyProblem())
        .isEqualTo("tape/b.jar: is the module acme.tape, and so is tape/a.jar; keep one");
  }

  @Test
  void aFolderWithoutJarsIsAProblem() throws IOException {
    Files.createDirectory(plugins.resolve("hollow"));
    assertThat(onlyProblem()).isEqualTo("hollow: holds no .jar");
  }

  @Test
  void aLinkOutOfTheFolderIsNotFollowed() throws IOException {
    Path outside =
        jars.jar(
            temp.resolve("outside/tape.jar"),
            jars.classes(PluginJars.store("acme.tape", "TapeStore", "Tape")));
    Files.createSymbolicLink(plugins.resolve("tape.jar"), outside);
    assertThat(onlyProblem())
        .isEqualTo(
            "tape.jar: is a link to " + outside.toRealPath() + ", outside the plugins folder");
    Files.delete(plugins.resolve("tape.jar"));
    Files.createSymbolicLink(plugins.resolve("dir"), outside.getParent());
    assertThat(onlyProblem()).contains("dir: is a link to ").endsWith("outside the plugins folder");
  }

  /** Found, or not loaded with a reason; never anything else. */
  @Test
  void damagedJarsHarmNoOther() throws IOException {
    plugin("good.jar", PluginJars.store("acme.good", "Good", "Good"));
    Path jar = plugin("tape.jar", PluginJars.store("acme.tape", "TapeStore", "Tape"));
    byte[] bytes = Files.readAllBytes(jar);
    Random random = new Random(42);
    int refused = 0;
    for (int i = 0; i < 150; i++) {
      byte[] damaged = bytes.clone();
      for (int hit = random.nextInt(1, 20); hit > 0; hit--) {
        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
      }
      // A name of its own: the JDK remembers the jars it has opened.
      Path copy = Files.write(plugins.resolve("damaged" + i + ".jar"), damaged);
      Files.deleteIfExists(jar);
      StoreCatalog catalog = find();
      assertThat(names(catalog)).contains("Good");
      refused += catalog.problems().size();
      Files.delete(copy);
    }
    assertThat(refused).isPositive();
  }

  private static void setMajorVersion(Path classFile, int major) throws IOException {
    byte[] bytes = Files.readAllBytes(classFile);
    bytes[6] = (byte) (major >>> 8);
    bytes[7] = (byte) major;
    Files.write(classFile, bytes);
  }

  private static void zip(Path jar, Path classes) throws IOException {
    List<Path> files = new ArrayList<>();
    try (Stream<Path> walk = Files.walk(classes)) {
      walk.filter(Files::isRegularFile).forEach(files::add);
    }
    try (ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(jar))) {
      for (Path file : files) {
        out.putNextEntry(new ZipEntry(classes.relativize(file).toString()));
        Files.copy(file, out);
        out.closeEntry();
      }
    }
  }
}

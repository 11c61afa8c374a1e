package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import ucm.api.Store;

/** Compiles plugins for tests: sources in, jars out, with the JDK's own tools. */
public final class PluginJars {

  /** The methods of a store that does nothing, to be put into a class body. */
  static final String STORE_BODY =
      """
        public java.util.List<ConfigKey<?>> configKeys() { return java.util.List.of(); }
        public void configure(StoreConfig config) {}
        public void open(StoreContext context) {}
        public java.util.BitSet lookup(BlockIds ids) { return new java.util.BitSet(); }
        public int lookupPrefix(BlockIds ids) { return -1; }
        public void prefetch(BlockIds ids) {}
        public Task load(Transfer transfer) { throw new UnsupportedOperationException(); }
        public Task dump(Transfer transfer) { throw new UnsupportedOperationException(); }
        public FlushResult flush(java.time.Duration timeout) { return FlushResult.clean(); }
        public java.util.BitSet durable(BlockIds ids) { return new java.util.BitSet(); }
        public void close() {}
      """;

  private final Path work;
  private int builds;

  /** Works in a folder of its own. */
  PluginJars(Path work) {
    this.work = work;
  }

  /** The sources of a module with one store. */
  public static Map<String, String> store(String module, String className, String storeName) {
    return store(module, className, storeName, "", "");
  }

  /** The same with more in the module's declaration and in the class. */
  static Map<String, String> store(
      String module, String className, String storeName, String directives, String extraBody) {
    return Map.of(
        "module-info.java",
        "module %s { requires ucm.api; %s provides ucm.api.Store with %s.%s; }"
            .formatted(module, directives, module, className),
        className + ".java",
        storeClass(module, className, storeName, extraBody));
  }

  public static String storeClass(String packageName, String className, String storeName) {
    return storeClass(packageName, className, storeName, "");
  }

  /** The same with more in the class. */
  public static String storeClass(
      String packageName, String className, String storeName, String extraBody) {
    return """
    package %s;
    import ucm.api.*;
    import ucm.api.config.*;
    @StoreName("%s")
    public final class %s implements Store {
    %s
    %s
    }
    """
        .formatted(packageName, storeName, className, extraBody, STORE_BODY);
  }

  /** Compiles one module. */
  public Path classes(Map<String, String> sources, Path... modulePath) throws IOException {
    Path source = Files.createDirectories(work.resolve("src" + ++builds));
    Path classes = Files.createDirectories(work.resolve("classes" + builds));
    List<String> files = new ArrayList<>();
    for (Map.Entry<String, String> file : sources.entrySet()) {
      Path path = source.resolve(file.getKey());
      Files.writeString(path, file.getValue());
      files.add(path.toString());
    }
    String path =
        Stream.concat(Stream.of(api(), annotations()), Stream.of(modulePath).map(Path::toString))
            .reduce((a, b) -> a + File.pathSeparator + b)
            .orElseThrow();
    List<String> arguments =
        new ArrayList<>(List.of("-proc:none", "-p", path, "-d", classes.toString()));
    arguments.addAll(files);
    run("javac", arguments);
    return classes;
  }

  /** Compiles one module without module-info, against the class path. */
  Path plainClasses(Map<String, String> sources) throws IOException {
    Path source = Files.createDirectories(work.resolve("src" + ++builds));
    Path classes = Files.createDirectories(work.resolve("classes" + builds));
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "-proc:none",
                "-cp",
                api() + File.pathSeparator + annotations(),
                "-d",
                classes.toString()));
    for (Map.Entry<String, String> file : sources.entrySet()) {
      Path path = source.resolve(file.getKey());
      Files.writeString(path, file.getValue());
      arguments.add(path.toString());
    }
    run("javac", arguments);
    return classes;
  }

  /** Packs classes into a jar. */
  public Path jar(Path jar, Path classes) throws IOException {
    return jar(jar, classes, "1.2.3");
  }

  /** Packs classes into a jar; the version is recorded when there is a module-info. */
  public Path jar(Path jar, Path classes, String version) throws IOException {
    Files.createDirectories(jar.getParent());
    List<String> arguments = new ArrayList<>(List.of("--create", "--file", jar.toString()));
    if (Files.exists(classes.resolve("module-info.class"))) {
      arguments.addAll(List.of("--module-version", version));
    }
    arguments.addAll(List.of("-C", classes.toString(), "."));
    run("jar", arguments);
    return jar;
  }

  /** Where ucm.api was loaded from. */
  static String api() {
    return Store.class
        .getModule()
        .getLayer()
        .configuration()
        .findModule("ucm.api")
        .flatMap(module -> module.reference().location())
        .map(location -> Path.of(location).toString())
        .orElseThrow();
  }

  /** The jar of JSpecify, which javac wants to see because ucm.api requires it (statically). */
  private static String annotations() {
    try {
      Class<?> type = Class.forName("org.jspecify.annotations.Nullable");
      return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    } catch (ClassNotFoundException | URISyntaxException e) {
      throw new AssertionError("JSpecify is not on the path of the tests", e);
    }
  }

  private static void run(String tool, List<String> arguments) {
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    PrintStream print = new PrintStream(output, true, StandardCharsets.UTF_8);
    int code =
        ToolProvider.findFirst(tool)
            .orElseThrow()
            .run(print, print, arguments.toArray(new String[0]));
    assertThat(code).as("%s %s%n%s", tool, arguments, output).isZero();
  }
}

package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;

/** Compiles stores that know nothing but {@code ucm.api}, as a third party would. */
final class PluginJar {

  /** The example of docs/plugins.md. */
  private static final Path HELLO = Path.of("../examples/ucm-store-hello/src/main/java");

  /** A stage that fails on demand, and cannot remove blocks. */
  private static final Path FAULTY = Path.of("src/test/resources/faulty");

  // The API, and JSpecify, which its module wants at compile time.
  private static final String[] API_PATH = System.getProperty("ucm.api.path").split(":", -1);

  private PluginJar() {}

  /** Compiles the store {@code Hello} against a jar of the API. */
  static void buildHello(Path work, Path jar, Path api) throws IOException {
    build(HELLO, work, jar, api);
  }

  /** Compiles the stage {@code Faulty}. */
  static void buildFaulty(Path work, Path jar) throws IOException {
    build(FAULTY, work, jar, Path.of(API_PATH[0]));
  }

  private static void build(Path sources, Path work, Path jar, Path api) throws IOException {
    Path classes = Files.createDirectories(work.resolve("classes"));
    List<String> arguments = new ArrayList<>(List.of("-proc:none", "-d", classes.toString()));
    arguments.addAll(List.of("--module-path", api + ":" + API_PATH[1]));
    try (Stream<Path> files = Files.walk(sources)) {
      files.map(Path::toString).filter(name -> name.endsWith(".java")).forEach(arguments::add);
    }
    run("javac", arguments.toArray(String[]::new));
    Files.createDirectories(jar.getParent());
    run("jar", "--create", "--file", jar.toString(), "-C", classes.toString(), ".");
  }

  private static void run(String tool, String... args) {
    assertThat(ToolProvider.findFirst(tool).orElseThrow().run(System.out, System.err, args))
        .as(tool)
        .isZero();
  }
}

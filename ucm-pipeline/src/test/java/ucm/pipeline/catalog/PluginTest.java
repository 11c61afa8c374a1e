package ucm.pipeline.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Plugins are real: compiled, packed and loaded by the test. */
public abstract class PluginTest {

  // Public, as only packages of tests that were asked for are opened to JUnit, and tests of others
  // extend this.
  @TempDir public Path temp;
  public Path plugins;
  public PluginJars jars;

  @BeforeEach
  public final void makesAFolder() throws IOException {
    plugins = Files.createDirectory(temp.resolve("plugins"));
    jars = new PluginJars(temp.resolve("work"));
  }

  public final StoreCatalog find() {
    return StoreCatalog.find(plugins);
  }

  protected final Path plugin(String file, Map<String, String> sources) throws IOException {
    return jars.jar(plugins.resolve(file), jars.classes(sources));
  }

  /** The names of stores that came out of plugins; the tests may have built-in ones as well. */
  public static List<String> names(StoreCatalog catalog) {
    List<String> builtIn = StoreCatalog.find().names();
    return catalog.names().stream().filter(name -> !builtIn.contains(name)).toList();
  }

  /** What came out of the plugins folder. */
  final List<StoreEntry> entries(StoreCatalog catalog) {
    return catalog.entries().stream()
        .filter(entry -> entry.location().startsWith(plugins.toString()))
        .toList();
  }

  /** The one thing that is wrong. */
  final String onlyProblem() {
    StoreCatalog catalog = find();
    assertThat(catalog.problems()).as("%s", catalog.problems()).hasSize(1);
    assertThat(names(catalog)).isEmpty();
    assertThat(entries(catalog)).noneMatch(StoreEntry::usable);
    return catalog.problems().getFirst().toString().replace(plugins + "/", "");
  }
}

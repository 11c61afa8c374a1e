package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Python package with the newest interfaces of vLLM, and with those of SGLang. */
class PythonIT {

  @TempDir private Path folder;

  @BeforeAll
  static void needsPython() throws Exception {
    PythonTests.assumePresent();
  }

  @Test
  void everyLayoutRankAndFault() throws Exception {
    Path plugins = folder.resolve("plugins");
    PluginJar.buildFaulty(folder.resolve("faulty"), plugins.resolve("faulty.jar"));
    PythonTests.run(
        folder, PythonTests.NEWEST, "not full", "", Map.of("UCM_PLUGINS", plugins.toString()));
  }

  @Tag("full")
  @Test
  void theSlowTests() throws Exception {
    PythonTests.run(folder, PythonTests.NEWEST, "full", "", Map.of());
  }
}

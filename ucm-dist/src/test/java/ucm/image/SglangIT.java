package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A real engine: SGLang with its hierarchical cache on the CPU. */
class SglangIT {

  static final String NEWEST = "0.5.23";

  @TempDir private Path folder;

  @Test
  void theNewestVersion() throws Exception {
    EngineTests.run(folder, "sglang", NEWEST, "not full");
  }

  @Tag("engines")
  @Test
  void allOfTheNewestVersion() throws Exception {
    EngineTests.run(folder, "sglang", NEWEST, "");
  }

  /** Host pools and storages of versions whose engines do not run on a CPU. */
  @Tag("engines")
  @ParameterizedTest
  @ValueSource(strings = {"0.5.5.post3", "0.5.9", "0.5.12", "0.5.16", "0.5.20"})
  void classesOfOlderVersions(String version) throws Exception {
    EngineTests.run(folder, "sglang", version, "");
  }
}

package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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
}

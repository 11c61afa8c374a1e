package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Real engines: vLLM on the CPU, in environments that {@code tools/engines/venv} makes. */
class VllmIT {

  static final String NEWEST = "0.32.0";

  @TempDir private Path folder;

  /** Engines that are forked; {@link VllmServeIT} has the others at the same time. */
  @Test
  void theNewestVersion() throws Exception {
    EngineTests.run(folder, "vllm", NEWEST, "not full and not started");
  }

  @Tag("engines")
  @ParameterizedTest
  @ValueSource(
      strings = {
        "0.9.2", "0.10.2", "0.11.0", "0.11.1", "0.13.0", "0.14.1", "0.17.1", "0.20.2", "0.23.0",
        "0.26.0", "0.29.0", "0.31.0", "0.32.0"
      })
  void allOfEachVersion(String version) throws Exception {
    EngineTests.run(folder, "vllm", version, "");
  }
}

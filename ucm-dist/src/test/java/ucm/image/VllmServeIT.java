package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Real engines that are started as operators start them, and older ones in short. */
class VllmServeIT {

  @TempDir private Path folder;

  @Test
  void theNewestVersion() throws Exception {
    EngineTests.run(folder, "vllm", VllmIT.NEWEST, "not full and started");
  }

  @Tag("ci")
  @ParameterizedTest
  @ValueSource(strings = {"0.17.1", "0.11.0"})
  void otherVersionsInShort(String version) throws Exception {
    EngineTests.run(folder, "vllm", version, "short and not newest");
  }
}

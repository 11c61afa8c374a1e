package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Real engines that are started as operators start them, and an older one in short. */
class VllmServeIT {

  @TempDir private Path folder;

  @Test
  void theNewestVersion() throws Exception {
    EngineTests.run(folder, "vllm", VllmIT.NEWEST, "not full and started");
  }

  /** Of before 0.15, when a step waited for its saves; {@code -Pengines} has the others. */
  @Tag("ci")
  @Test
  void anOlderVersionInShort() throws Exception {
    EngineTests.run(folder, "vllm", "0.11.0", "short and not newest");
  }
}

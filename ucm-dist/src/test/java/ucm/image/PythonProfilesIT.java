package ucm.image;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The Python package with older interfaces of vLLM, simulated. {@link VllmIT} runs real engines of
 * such versions.
 */
@Tag("full")
class PythonProfilesIT {

  @TempDir private Path folder;

  @BeforeAll
  static void needsPython() throws Exception {
    PythonTests.assumePresent();
  }

  @ParameterizedTest
  @ValueSource(strings = {"0.9", "0.11", "0.12", "0.15", "0.18", "0.24"})
  void olderInterfaces(String profile) throws Exception {
    PythonTests.run(
        folder,
        profile,
        "not full",
        "(before and Cache) or abort or killed or (random and 2BNHD-1)",
        Map.of());
  }
}

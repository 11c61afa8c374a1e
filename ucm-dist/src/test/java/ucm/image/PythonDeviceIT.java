package ucm.image;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Python package where the daemon copies to and from the memory of a simulated GPU. */
class PythonDeviceIT {

  @TempDir private Path folder;

  @BeforeAll
  static void needsPython() throws Exception {
    PythonTests.assumePresent();
  }

  @Test
  void theDevicePlane() throws Exception {
    run("not full", "device or abort or before or (random and 2BNHD-2)");
  }

  @Tag("full")
  @Test
  void theWholeSuiteForGpus() throws Exception {
    run("full", "device");
  }

  private void run(String marks, String selection) throws Exception {
    SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
    PythonTests.run(
        folder,
        PythonTests.NEWEST,
        marks,
        selection,
        driver.environment("SIM_CUDA_DIRECT", "1", "SIM_CUDA_VERSION", "12080"));
  }
}

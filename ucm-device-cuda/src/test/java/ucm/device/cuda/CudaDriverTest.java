package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import jcuda.driver.CUresult;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.device.DeviceAbsentException;
import ucm.device.DeviceDriver;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;

/** What the driver says about itself, and what is said when it will not work. */
final class CudaDriverTest {

  private final SimulatedCuda cuda = SimulatedCuda.load();

  @Test
  void isFoundByItsName() {
    assertThat(DeviceDriver.find("cuda")).containsInstanceOf(CudaDriver.class);
    assertThat(DeviceDriver.find("abacus")).isEmpty();
  }

  @Test
  void listsTheDevices() {
    DeviceInfo only = new CudaDriver().devices().getFirst();
    assertThat(only)
        .isEqualTo(
            new DeviceInfo(
                0,
                "Simulated GPU 0",
                16L << 30,
                "CUDA 12.6",
                HexFormat.of().formatHex("simulated GPU  0".getBytes(StandardCharsets.US_ASCII)),
                -1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 7})
  void saysHowManyDevicesThereAre(int asked) {
    assertThatThrownBy(() -> new CudaDriver().open(asked))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining("no CUDA device " + asked)
        .hasMessageContaining("the driver shows 1, from 0")
        .hasMessageContaining("CUDA_VISIBLE_DEVICES");
  }

  @ParameterizedTest
  @CsvSource({
    "100, CUDA_ERROR_NO_DEVICE, nvidia-smi",
    "803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, reboot",
    "34, CUDA_ERROR_STUB_LIBRARY, stub",
    "802, CUDA_ERROR_SYSTEM_NOT_READY, fabricmanager",
    "999, CUDA_ERROR_UNKNOWN, dmesg"
  })
  void namesWhatTheDriverAnsweredToTheFirstCall(int code, String name, String advice) {
    cuda.fail("cuInit", 1, 1, code);
    assertThatThrownBy(() -> new CudaDriver().devices())
        .isInstanceOf(DeviceException.class)
        .isNotInstanceOf(DeviceAbsentException.class)
        .hasMessageContaining("cuInit")
        .hasMessageContaining(code + " " + name)
        .hasMessageContaining(advice);
    assertThat(new CudaDriver().devices()).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuDriverGetVersion",
        "cuInit",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceTotalMem",
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain"
      })
  void leavesNothingWhenItCannotBeOpened(String call) {
    Map<String, Long> before = cuda.kept();
    cuda.fail(call, 1, 1, CUresult.CUDA_ERROR_UNKNOWN);
    assertThatThrownBy(() -> new CudaDriver().open(0))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining(call);
    assertThat(cuda.kept()).isEqualTo(before);
    cuda.requireNoMisuse();
  }

  @Test
  void tellsAMissingDriverFromAMissingNativeLibraryAndFromABrokenOne() {
    assertThat(
            CudaLibrary.explain(
                "/x/lib/libJCudaDriver.so: libcuda.so.1: cannot open shared object file: No such"
                    + " file or directory"))
        .isInstanceOf(DeviceAbsentException.class)
        .hasMessageContaining("libcuda.so.1 was not found")
        .hasMessageContaining("install the driver");
    assertThat(CudaLibrary.explain("no JCudaDriver-12.6.0-linux-x86_64 in java.library.path: /x"))
        .isInstanceOf(DeviceAbsentException.class)
        .hasMessageContaining("libJCudaDriver-12.6.0-linux-x86_64.so");
    assertThat(CudaLibrary.explain("/lib/libcuda.so.1: file too short"))
        .isNotInstanceOf(DeviceAbsentException.class)
        .hasMessageContaining("file too short");
  }
}

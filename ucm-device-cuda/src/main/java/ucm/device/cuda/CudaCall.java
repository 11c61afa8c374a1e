package ucm.device.cuda;

import jcuda.driver.CUresult;
import ucm.device.DeviceException;

/** Turns what a call of the driver answered into an error that says what to do. */
final class CudaCall {

  private CudaCall() {}

  /** Requires that a call answered success; costs nothing when it did. */
  static void check(int result, String call, Object on) {
    if (result != CUresult.CUDA_SUCCESS) {
      throw failed(result, call, on);
    }
  }

  /** The error of a call that did not succeed. */
  static DeviceException failed(int result, String call, Object on) {
    return new DeviceException(
        call + " on " + on + " answered " + describe(result) + advice(result));
  }

  /** A result as a number and its name. */
  static String describe(int result) {
    return result + " " + CUresult.stringFor(result);
  }

  private static String advice(int result) {
    return switch (result) {
      case CUresult.CUDA_ERROR_OUT_OF_MEMORY ->
          ": there is not enough memory; ask for less, or end what else uses it";
      case CUresult.CUDA_ERROR_NO_DEVICE ->
          ": the driver is installed and shows no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES";
      case CUresult.CUDA_ERROR_STUB_LIBRARY ->
          ": libcuda.so.1 is the stub that programs are linked with; put the driver's own library"
              + " before it on the linker's path";
      case CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ->
          ": the kernel module and libcuda.so.1 are of different versions; reboot after an update"
              + " of the driver, or use the driver's own library";
      case CUresult.CUDA_ERROR_SYSTEM_NOT_READY ->
          ": the driver is not ready; on machines with NVSwitch, start nvidia-fabricmanager";
      case CUresult.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE ->
          ": forward compatibility is for data-centre GPUs; install a newer driver";
      case CUresult.CUDA_ERROR_UNKNOWN ->
          ": check the kernel's log (dmesg) and nvidia-smi; the modules nvidia and nvidia_uvm must"
              + " be loaded";
      case CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_LAUNCH_FAILED ->
          ": the device's context is lost, and this process with it; restart it";
      default -> "";
    };
  }
}

/**
 * NVIDIA GPUs for the stores: the service {@code ucm.device.DeviceDriver} over the CUDA driver API, which
 * it calls through JCuda, and through JNA where JCuda has no name for a call.
 *
 * <p>It exports nothing. An image without this module, and without JCuda's native library, is one for
 * machines without a GPU.
 */
@org.jspecify.annotations.NullMarked
module ucm.device.cuda {
  requires com.sun.jna;
  requires jcuda;
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.device;

  provides ucm.api.admin.HealthCheck with
      ucm.device.cuda.CudaHealthCheck;
  provides ucm.device.DeviceDriver with
      ucm.device.cuda.CudaDriver;
}

/**
 * NVIDIA GPUs as {@link ucm.device.DeviceDriver}, over the CUDA driver API through JCuda. Calls
 * of {@code ucm.device} go in, calls of the driver come out. It links no CUDA runtime.
 */
package ucm.device.cuda;

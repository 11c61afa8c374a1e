package ucm.device.cuda;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUipcMemHandle;
import jcuda.driver.CUipcMem_flags;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.device.Device;
import ucm.device.DeviceException;
import ucm.device.DeviceInfo;
import ucm.device.DeviceStream;

/**
 * A GPU with its primary context retained: the one that the runtime API, and so an engine in this
 * process, uses as well. A context is current for a thread; calls here push it and pop it again, and a
 * stream's thread keeps it.
 */
final class CudaDevice implements Device {

  private static final Logger LOG = LoggerFactory.getLogger(CudaDevice.class);

  private static final double GIB = 1L << 30;

  private final DeviceInfo info;
  private final CUdevice device;
  private final long pinBytes;
  private final CUcontext context = new CUcontext();
  private final long maxPitch;
  // Guarded by this: how to give back each region that is pinned or allocated.
  private final Map<MemoryRegion, Runnable> kept = new LinkedHashMap<>();
  private boolean closed;

  /**
   * @param pinBytes the most that a call pins
   */
  CudaDevice(CUdevice device, DeviceInfo info, long pinBytes) {
    this.device = device;
    this.pinBytes = pinBytes;
    this.info = info;
    int[] pitch = new int[1];
    check(
        JCudaDriver.cuDeviceGetAttribute(
            pitch, CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PITCH, device),
        "cuDeviceGetAttribute(MAX_PITCH)");
    this.maxPitch = pitch[0];
    check(JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain");
  }

  @Override
  public DeviceInfo info() {
    return info;
  }

  @Override
  public synchronized void pin(MemoryRegion host, long unit) {
    requireOpen();
    Deque<Pointer> parts = new ArrayDeque<>();
    within(() -> pin(host, Math.max(pinBytes / unit, 1) * unit, parts));
    kept.put(host, () -> unpin(parts));
  }

  /** Pins all parts, or none: a call for hundreds of gigabytes would be silent for minutes. */
  private void pin(MemoryRegion host, long partBytes, Deque<Pointer> pinned) {
    try {
      for (long at = 0; at < host.byteSize(); at += partBytes) {
        long bytes = Math.min(partBytes, host.byteSize() - at);
        Pointer part = new Pointer();
        Handles.set(part, host.address() + at);
        check(
            JCudaDriver.cuMemHostRegister(part, bytes, JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE),
            "cuMemHostRegister of " + bytes + " bytes");
        pinned.add(part);
        if (partBytes < host.byteSize()) {
          LOG.info(
              "{}: pinned {} of {} GiB of host memory",
              this,
              Math.round((at + bytes) / GIB),
              Math.round(host.byteSize() / GIB));
        }
      }
    } catch (DeviceException e) {
      DeviceException _ = attempt(() -> unpin(pinned), e);
      throw e;
    }
  }

  private void unpin(Deque<Pointer> pinned) {
    while (!pinned.isEmpty()) {
      check(JCudaDriver.cuMemHostUnregister(pinned.remove()), "cuMemHostUnregister");
    }
  }

  @Override
  public DeviceStream stream(int marks) {
    synchronized (this) {
      requireOpen();
    }
    check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    return new CudaStream(this, marks, CudaBatch.preferred());
  }

  @Override
  public synchronized MemoryRegion allocate(long bytes) {
    requireOpen();
    CUdeviceptr address = new CUdeviceptr();
    within(
        () -> check(JCudaDriver.cuMemAlloc(address, bytes), "cuMemAlloc of " + bytes + " bytes"));
    MemoryRegion region = MemoryRegion.device(info.id(), Handles.get(address), bytes);
    kept.put(region, () -> check(JCudaDriver.cuMemFree(address), "cuMemFree"));
    return region;
  }

  @Override
  public synchronized MemoryRegion openShared(byte[] handle, long bytes) {
    requireOpen();
    CUdeviceptr address = new CUdeviceptr();
    CUipcMemHandle opened = Handles.ipc(handle);
    within(
        () ->
            check(
                JCudaDriver.cuIpcOpenMemHandle(
                    address, opened, CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                "cuIpcOpenMemHandle"));
    MemoryRegion region = MemoryRegion.device(info.id(), Handles.get(address), bytes);
    kept.put(region, () -> check(JCudaDriver.cuIpcCloseMemHandle(address), "cuIpcCloseMemHandle"));
    return region;
  }

  @Override
  @SuppressWarnings("restricted") // The driver says where the memory is, and how much there is.
  public synchronized MemoryRegion allocatePinned(long bytes) {
    requireOpen();
    Pointer address = new Pointer();
    within(
        () ->
            check(
                JCudaDriver.cuMemHostAlloc(address, bytes, JCudaDriver.CU_MEMHOSTALLOC_PORTABLE),
                "cuMemHostAlloc of " + bytes + " bytes"));
    MemoryRegion region =
        MemoryRegion.host(MemorySegment.ofAddress(Handles.get(address)).reinterpret(bytes));
    kept.put(region, () -> check(JCudaDriver.cuMemFreeHost(address), "cuMemFreeHost"));
    return region;
  }

  @Override
  public synchronized void free(MemoryRegion region) {
    Runnable release = kept.remove(region);
    if (release != null) {
      within(release);
    } else if (!closed) {
      throw new IllegalArgumentException(region + " is not of this device, or is free already");
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    DeviceException first = null;
    for (MemoryRegion region : List.copyOf(kept.keySet())) {
      first = attempt(() -> free(region), first);
    }
    closed = true;
    first =
        attempt(
            () -> check(JCudaDriver.cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease"),
            first);
    if (first != null) {
      throw first;
    }
  }

  long maxPitch() {
    return maxPitch;
  }

  void check(int result, String call) {
    CudaCall.check(result, call, this);
  }

  private void requireOpen() {
    if (closed) {
      throw new DeviceException(this + " is closed");
    }
  }

  /** Runs calls with the context current, and leaves the thread as it was. */
  private void within(Runnable calls) {
    check(JCudaDriver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    try {
      calls.run();
    } finally {
      int result = JCudaDriver.cuCtxPopCurrent(new CUcontext());
      if (result != 0) {
        // Nothing can be done about it, and what the calls said matters more.
        LOG.warn("cuCtxPopCurrent on {} answered {}", this, CudaCall.describe(result));
      }
    }
  }

  private static @Nullable DeviceException attempt(Runnable step, @Nullable DeviceException first) {
    try {
      step.run();
    } catch (DeviceException e) {
      if (first == null) {
        return e;
      }
      first.addSuppressed(e);
    }
    return first;
  }

  @Override
  public String toString() {
    return "CUDA device " + info.id() + " (" + info.name() + ")";
  }
}

package ucm.device.cuda;

import java.lang.foreign.MemorySegment;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
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

  private final DeviceInfo info;
  private final CUdevice device;
  private final CUcontext context = new CUcontext();
  private final long maxPitch;
  // Guarded by this.
  private final Set<Pin> pins = new HashSet<>();
  private final Map<MemoryRegion, Kind> regions = new HashMap<>();
  private boolean closed;

  CudaDevice(CUdevice device, DeviceInfo info) {
    this.device = device;
    this.info = info;
    int[] pitch = new int[1];
    check(
        JCudaDriver.cuDeviceGetAttribute(
            pitch, CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PITCH, device),
        "cuDeviceGetAttribute(MAX_PITCH)");
    this.maxPitch = pitch[0];
    check(JCudaDriver.cuDevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain");
  }

  private enum Kind {
    DEVICE,
    PINNED,
    SHARED
  }

  private final class Pin implements Pinned {

    private final MemoryRegion region;

    private Pin(MemoryRegion region) {
      this.region = region;
    }

    @Override
    public void close() {
      synchronized (CudaDevice.this) {
        if (!pins.remove(this)) {
          return;
        }
        within(
            () ->
                check(JCudaDriver.cuMemHostUnregister(hostPointer(region)), "cuMemHostUnregister"));
      }
    }
  }

  @Override
  public DeviceInfo info() {
    return info;
  }

  @Override
  public synchronized Pinned pin(MemoryRegion host) {
    requireOpen();
    within(
        () ->
            check(
                JCudaDriver.cuMemHostRegister(
                    hostPointer(host), host.byteSize(), JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE),
                "cuMemHostRegister of " + host.byteSize() + " bytes"));
    Pin pin = new Pin(host);
    pins.add(pin);
    return pin;
  }

  @Override
  public DeviceStream stream(int marks) {
    synchronized (this) {
      requireOpen();
    }
    check(JCudaDriver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    return new CudaStream(this, marks);
  }

  @Override
  public synchronized MemoryRegion allocate(long bytes) {
    requireOpen();
    CUdeviceptr address = new CUdeviceptr();
    within(
        () -> check(JCudaDriver.cuMemAlloc(address, bytes), "cuMemAlloc of " + bytes + " bytes"));
    MemoryRegion region = MemoryRegion.device(info.id(), Handles.get(address), bytes);
    regions.put(region, Kind.DEVICE);
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
    regions.put(region, Kind.SHARED);
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
    regions.put(region, Kind.PINNED);
    return region;
  }

  @Override
  public synchronized void free(MemoryRegion region) {
    Kind kind = regions.remove(region);
    if (kind == null) {
      throw new IllegalArgumentException(region + " is not of this device, or is free already");
    }
    within(
        () -> {
          switch (kind) {
            case DEVICE -> check(JCudaDriver.cuMemFree(devicePointer(region)), "cuMemFree");
            case PINNED -> check(JCudaDriver.cuMemFreeHost(hostPointer(region)), "cuMemFreeHost");
            case SHARED ->
                check(
                    JCudaDriver.cuIpcCloseMemHandle(devicePointer(region)), "cuIpcCloseMemHandle");
          }
        });
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    DeviceException first = null;
    for (Pin pin : Set.copyOf(pins)) {
      first = attempt(pin::close, first);
    }
    for (MemoryRegion region : Set.copyOf(regions.keySet())) {
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

  private static CUdeviceptr devicePointer(MemoryRegion region) {
    CUdeviceptr pointer = new CUdeviceptr();
    Handles.set(pointer, region.address());
    return pointer;
  }

  private static Pointer hostPointer(MemoryRegion region) {
    Pointer pointer = new Pointer();
    Handles.set(pointer, region.address());
    return pointer;
  }

  @Override
  public String toString() {
    return "CUDA device " + info.id() + " (" + info.name() + ")";
  }
}

package ucm.device.cuda;

import java.util.Optional;
import jcuda.Pointer;
import jcuda.driver.CUDA_MEMCPY2D;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUmemorytype;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.MemoryRegion;
import ucm.device.DeviceStream;

/**
 * A CUDA stream and events on it. Copies below 1 MiB are collected and queued by one call where the
 * driver has that ({@link CudaBatch}), at the latest with the next mark or wait; the others by a call
 * each. The objects that JCuda wants are made once and pointed elsewhere for each call.
 *
 * <p>The stream does not wait for the default stream, as engines compute there. The events let their
 * waiter sleep: some microseconds later than one that spins, and without a processor of its own.
 */
final class CudaStream implements DeviceStream {

  private static final Logger LOG = LoggerFactory.getLogger(CudaStream.class);

  // On an H100 larger copies of a batch take turns with those of the other direction; calls do not.
  private static final long MAX_BATCHED_BYTES = (1 << 20) - 1;

  private final CudaDevice device;
  private final CUstream stream = new CUstream();
  private final CUevent[] marks;
  private int created;
  private boolean closed;

  // Null where each copy is a call.
  private final @Nullable CudaBatch batch;
  private final Pointer host = new Pointer();
  private final CUdeviceptr onDevice = new CUdeviceptr();
  private final CUevent foreign = new CUevent();
  private final CUDA_MEMCPY2D toDevice = new CUDA_MEMCPY2D();
  private final CUDA_MEMCPY2D toHost = new CUDA_MEMCPY2D();

  /** On a thread for which the context is current. */
  CudaStream(CudaDevice device, int marks, Optional<CudaBatch> batch) {
    this.device = device;
    this.batch = batch.orElse(null);
    this.marks = new CUevent[marks];
    toDevice.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST;
    toDevice.srcHost = host;
    toDevice.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE;
    toDevice.dstDevice = onDevice;
    toHost.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE;
    toHost.srcDevice = onDevice;
    toHost.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST;
    toHost.dstHost = host;
    device.check(
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
    try {
      for (; created < marks; created++) {
        this.marks[created] = new CUevent();
        device.check(
            JCudaDriver.cuEventCreate(
                this.marks[created],
                CUevent_flags.CU_EVENT_BLOCKING_SYNC | CUevent_flags.CU_EVENT_DISABLE_TIMING),
            "cuEventCreate");
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  @Override
  public void copy(MemoryRegion from, long fromOffset, MemoryRegion to, long toOffset, long bytes) {
    if (batch != null && bytes <= MAX_BATCHED_BYTES) {
      if (batch.add(to.address() + toOffset, from.address() + fromOffset, bytes)) {
        queueBatch();
      }
    } else if (from.isHost()) {
      Handles.set(host, from.address() + fromOffset);
      Handles.set(onDevice, to.address() + toOffset);
      device.check(
          JCudaDriver.cuMemcpyHtoDAsync(onDevice, host, bytes, stream), "cuMemcpyHtoDAsync");
    } else {
      Handles.set(onDevice, from.address() + fromOffset);
      Handles.set(host, to.address() + toOffset);
      device.check(
          JCudaDriver.cuMemcpyDtoHAsync(host, onDevice, bytes, stream), "cuMemcpyDtoHAsync");
    }
  }

  @Override
  public void copyRows(
      MemoryRegion from,
      long fromOffset,
      long fromPitch,
      MemoryRegion to,
      long toOffset,
      long toPitch,
      long rowBytes,
      int rows) {
    boolean down = from.isHost();
    CUDA_MEMCPY2D copy = down ? toDevice : toHost;
    Handles.set(down ? host : onDevice, from.address() + fromOffset);
    Handles.set(down ? onDevice : host, to.address() + toOffset);
    copy.srcPitch = fromPitch;
    copy.dstPitch = toPitch;
    copy.WidthInBytes = rowBytes;
    copy.Height = rows;
    device.check(JCudaDriver.cuMemcpy2DAsync(copy, stream), "cuMemcpy2DAsync");
  }

  private void queueBatch() {
    if (batch != null) {
      device.check(batch.queue(Handles.get(stream)), "cuMemcpyBatchAsync");
    }
  }

  @Override
  public long maxPitch() {
    return device.maxPitch();
  }

  @Override
  public void waitFor(long event) {
    queueBatch();
    Handles.set(foreign, event);
    device.check(JCudaDriver.cuStreamWaitEvent(stream, foreign, 0), "cuStreamWaitEvent");
  }

  @Override
  public void mark(int mark) {
    queueBatch();
    device.check(JCudaDriver.cuEventRecord(marks[mark], stream), "cuEventRecord");
  }

  @Override
  public void await(int mark) {
    device.check(JCudaDriver.cuEventSynchronize(marks[mark]), "cuEventSynchronize");
  }

  @Override
  public void awaitAll() {
    queueBatch();
    device.check(JCudaDriver.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    if (batch != null) {
      batch.close();
    }
    while (created > 0) {
      int result = JCudaDriver.cuEventDestroy(marks[--created]);
      if (result != 0) {
        LOG.warn("cuEventDestroy on {} answered {}", device, CudaCall.describe(result));
      }
    }
    int result = JCudaDriver.cuStreamDestroy(stream);
    if (result != 0) {
      LOG.warn("cuStreamDestroy on {} answered {}", device, CudaCall.describe(result));
    }
  }
}

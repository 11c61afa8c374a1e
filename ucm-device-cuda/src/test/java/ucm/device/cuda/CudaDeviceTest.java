package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Map;
import jcuda.driver.CUcontext;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.MemoryRegion;
import ucm.device.Device;
import ucm.device.DeviceException;
import ucm.device.DeviceStream;

/** The device over the real JCuda and a simulated driver. */
final class CudaDeviceTest {

  private static final int SIZE = 1 << 16;

  private final SimulatedCuda cuda = SimulatedCuda.load();
  private final Arena arena = Arena.ofShared();
  private Map<String, Long> before = Map.of();

  @BeforeEach
  void counts() {
    before = cuda.kept();
  }

  @AfterEach
  void leavesNothing() {
    cuda.hold(false);
    assertThat(cuda.kept()).isEqualTo(before);
    cuda.requireNoMisuse();
    arena.close();
  }

  @Test
  void copiesDownAndUpAndSaysWhatItIs() {
    try (Device device = new CudaDriver().open(0);
        DeviceStream stream = device.stream(2)) {
      assertThat(device.info().name()).isEqualTo("Simulated GPU 0");
      assertThat(device.info().driver()).isEqualTo("CUDA 12.6");
      MemoryRegion host = pattern();
      MemoryRegion back = MemoryRegion.host(arena.allocate(SIZE));
      MemoryRegion memory = device.allocate(SIZE);
      device.pin(host, SIZE);
      device.pin(back, SIZE);
      stream.copy(host, 100, memory, 7, 1000);
      stream.copy(memory, 7, back, 3, 1000);
      stream.mark(1);
      stream.await(1);
      device.free(host);
      device.free(back);
      assertThat(back.segment().asSlice(3, 1000).mismatch(host.segment().asSlice(100, 1000)))
          .isEqualTo(-1);
      assertThat(cuda.count("unregistered")).isZero();
    }
  }

  @Test
  void pinsLargeMemoryInPartsOfWholeUnits() {
    long unit = 3 * 4096;
    try (Arena pages = Arena.ofShared();
        Device device = CudaDriver.open(0, 2 * unit + 4096);
        DeviceStream stream = device.stream(1)) {
      MemoryRegion host = MemoryRegion.host(pages.allocate(5 * unit, 4096));
      MemoryRegion memory = device.allocate(unit);
      long calls = cuda.count("cuMemHostRegister");
      device.pin(host, unit);
      assertThat(cuda.count("cuMemHostRegister") - calls).isEqualTo(3);
      for (int i = 0; i < 5; i++) {
        stream.copy(host, i * unit, memory, 0, unit);
      }
      stream.awaitAll();
      assertThat(cuda.count("unregistered")).isZero();
      device.free(host);
      assertThat(cuda.kept().get("registrations")).isEqualTo(before.get("registrations"));
    }
  }

  @Test
  void pinsNothingWhenOnePartIsRefused() {
    try (Arena pages = Arena.ofShared();
        Device device = CudaDriver.open(0, 4096)) {
      MemoryRegion host = MemoryRegion.host(pages.allocate(3 * 4096, 4096));
      cuda.fail("cuMemHostRegister", 3, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      assertThatThrownBy(() -> device.pin(host, 4096))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("cuMemHostRegister of 4096 bytes");
      assertThat(cuda.kept().get("registrations")).isEqualTo(before.get("registrations"));
    }
  }

  @Test
  void memoryOfAnotherProcessIsRefusedWithoutItsHandle() {
    try (Device device = new CudaDriver().open(0)) {
      assertThatThrownBy(() -> device.openShared(new byte[64], SIZE))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining("cuIpcOpenMemHandle on CUDA device 0");
      assertThatThrownBy(() -> device.openShared(new byte[63], SIZE))
          .isInstanceOf(DeviceException.class)
          .hasMessage("a handle of shared memory has 64 bytes; found 63");
    }
  }

  @Test
  void copiesRowsBothWays() {
    try (Device device = new CudaDriver().open(0);
        DeviceStream stream = device.stream(1)) {
      MemoryRegion host = pattern();
      MemoryRegion memory = device.allocate(SIZE);
      MemoryRegion back = device.allocatePinned(SIZE);
      back.segment().fill((byte) 0);
      cuda.bytes(memory).fill((byte) 0);
      stream.copyRows(host, 64, 256, memory, 32, 1024, 128, 10);
      stream.copyRows(memory, 32, 1024, back, 0, 128, 128, 10);
      stream.awaitAll();
      for (int row = 0; row < 10; row++) {
        MemorySegment expected = host.segment().asSlice(64 + row * 256L, 128);
        assertThat(back.segment().asSlice(row * 128L, 128).mismatch(expected)).isEqualTo(-1);
        assertThat(cuda.bytes(memory).get(ValueLayout.JAVA_BYTE, 32 + row * 1024L + 128)).isZero();
      }
      assertThat(stream.maxPitch()).isEqualTo(Integer.MAX_VALUE);
    }
  }

  @Test
  void queuesAndGoesOn() {
    try (Device device = new CudaDriver().open(0);
        DeviceStream stream = device.stream(1)) {
      MemoryRegion memory = device.allocate(8);
      MemoryRegion host = device.allocatePinned(8);
      host.segment().fill((byte) 5);
      cuda.hold(true);
      stream.copy(host, 0, memory, 0, 8);
      stream.mark(0);
      assertThat(cuda.count("copies")).isZero();
      cuda.hold(false);
      stream.await(0);
      assertThat(cuda.bytes(memory).get(ValueLayout.JAVA_BYTE, 7)).isEqualTo((byte) 5);
    }
  }

  @Test
  void waitsForAnEventOfTheEngine() {
    try (Device device = new CudaDriver().open(0);
        DeviceStream stream = device.stream(1)) {
      MemoryRegion memory = device.allocate(8);
      MemoryRegion host = device.allocatePinned(8);
      cuda.bytes(memory).fill((byte) 1);
      long event = cuda.event();
      stream.waitFor(event);
      stream.copy(memory, 0, host, 0, 8);
      stream.mark(0);
      // The engine's computation comes to its end only here.
      cuda.bytes(memory).fill((byte) 2);
      cuda.comes(event);
      stream.await(0);
      assertThat(host.segment().get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 2);
    }
  }

  @Test
  void leavesTheContextOfTheCallingThreadAlone() {
    CUcontext found = new CUcontext();
    try (Device device = new CudaDriver().open(0)) {
      device.pin(pattern(), SIZE);
      device.allocate(16);
      assertThat(JCudaDriver.cuCtxGetCurrent(found)).isZero();
      assertThat(Handles.get(found)).isZero();
    }
  }

  @Test
  void givesBackAllWhenClosedAndOnlyOnce() {
    Device device = new CudaDriver().open(0);
    device.pin(pattern(), SIZE);
    device.allocate(16);
    device.allocatePinned(16);
    device.close();
    device.close();
    assertThat(cuda.kept()).isEqualTo(before);
    assertThatThrownBy(() -> device.allocate(1))
        .isInstanceOf(DeviceException.class)
        .hasMessageContaining("is closed");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuMemHostRegister",
        "cuMemAlloc",
        "cuMemHostAlloc",
        "cuStreamCreate",
        "cuEventCreate",
        "cuStreamWaitEvent",
        "cuMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpy2DAsync",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuStreamSynchronize"
      })
  void namesTheCallThatFailedAndLeavesNothing(String call) {
    try (Device device = new CudaDriver().open(0)) {
      cuda.fail(call, 1, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      assertThatThrownBy(() -> useAll(device))
          .isInstanceOf(DeviceException.class)
          .hasMessageContaining(call)
          .hasMessageContaining("Simulated GPU 0")
          .hasMessageContaining("2 CUDA_ERROR_OUT_OF_MEMORY")
          .hasMessageContaining("not enough memory");
    }
  }

  @Test
  void queueingACopyAllocatesNothing() {
    var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (Device device = new CudaDriver().open(0);
        DeviceStream stream = device.stream(1)) {
      MemoryRegion memory = device.allocate(SIZE);
      MemoryRegion host = device.allocatePinned(SIZE);
      long allocated = Long.MAX_VALUE;
      // The first rounds load classes.
      for (int round = 0; round < 5; round++) {
        long start = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 1000; i++) {
          stream.copy(host, i, memory, i, 8);
          stream.copyRows(memory, i, 64, host, i, 32, 16, 2);
        }
        stream.mark(0);
        allocated = threads.getCurrentThreadAllocatedBytes() - start;
        stream.await(0);
      }
      assertThat(allocated).isLessThan(1000);
    }
  }

  private void useAll(Device device) {
    MemoryRegion pinned = pattern();
    device.pin(pinned, SIZE);
    try (DeviceStream stream = device.stream(2)) {
      MemoryRegion memory = device.allocate(64);
      MemoryRegion host = device.allocatePinned(64);
      try {
        long event = cuda.event();
        cuda.comes(event);
        stream.waitFor(event);
        stream.copy(host, 0, memory, 0, 64);
        stream.copy(memory, 0, host, 0, 64);
        stream.copyRows(memory, 0, 32, host, 0, 32, 16, 2);
        stream.mark(0);
        stream.await(0);
        stream.awaitAll();
      } finally {
        stream.awaitAll();
      }
    } finally {
      device.free(pinned);
    }
  }

  private MemoryRegion pattern() {
    MemorySegment segment = arena.allocate(SIZE);
    for (int i = 0; i < SIZE; i++) {
      segment.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 31 + i / 251));
    }
    return MemoryRegion.host(segment);
  }
}

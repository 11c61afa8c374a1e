package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.device.cuda.DeviceBench.LAYOUT;
import static ucm.device.cuda.DeviceBench.PATIENCE;
import static ucm.device.cuda.DeviceBench.awaitThat;
import static ucm.device.cuda.DeviceBench.memory;
import static ucm.device.cuda.DeviceBench.refresh;

import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import jcuda.driver.CUresult;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.TransferResult;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.LibcFileOperations;
import ucm.store.nfs.NfsStore;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Nfs between an engine on a GPU and files: order, few buffers, faults of calls, and what is left. */
@Timeout(60)
final class NfsOnDeviceTest {

  @TempDir private Path directory;

  private final DeviceBench bench = new DeviceBench();
  private final SimulatedCuda cuda = bench.cuda;

  @AfterEach
  void leavesNothing() {
    bench.close();
  }

  @Test
  void dumpReadsTheMemoryAfterTheEventOfTheEngine() throws InterruptedException {
    Store nfs = nfs(Map.of());
    BlockIds ids = BlockBytes.ids(1, 4);
    TransferMemory memory = memory(ids).scribble();
    long event = cuda.event();
    DeviceMirror mirror = bench.mirror(memory.transfer(), false, event);
    Task dump = nfs.dump(mirror.transfer());
    // The engine computes the bytes only now.
    memory.fill();
    refresh(mirror, memory);
    assertThat(dump.check()).isFalse();
    cuda.comes(event);
    dump.await(PATIENCE).requireOk();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    bench.requireLoads(nfs, ids);
  }

  @Test
  void movesManyTimesWhatItsBuffersHold() throws InterruptedException {
    Store nfs = nfs(Map.of("buffer_number", 4));
    BlockIds ids = BlockBytes.ids(1, 100);
    bench.dump(nfs, ids).requireOk();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    bench.requireLoads(nfs, ids);
    requireAllBuffersFree();
  }

  @Test
  void buffersSmallerThanAShardArePutTogether() throws InterruptedException {
    Store nfs = nfs(Map.of("buffer_number", 16, "io_size", 1024));
    BlockIds ids = BlockBytes.ids(1, 10);
    bench.dump(nfs, ids).requireOk();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    bench.requireLoads(nfs, ids);
  }

  @Test
  void hostMemoryReadsWhatTheDeviceWroteWithoutABuffer() throws InterruptedException {
    Store nfs = nfs(Map.of());
    BlockIds ids = BlockBytes.ids(1, 3);
    bench.dump(nfs, ids).requireOk();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    long copies = cuda.count("copies");
    TransferMemory host = memory(ids);
    nfs.load(host.transfer()).await(PATIENCE).requireOk();
    host.check();
    assertThat(cuda.count("copies")).isEqualTo(copies);
  }

  @Test
  void flushCountsWhatIsStillOnItsWayToTheFiles() throws InterruptedException {
    Store nfs = nfs(Map.of());
    cuda.hold(true);
    DeviceMirror mirror = bench.mirror(memory(BlockBytes.ids(1, 5)).fill().transfer(), false, 0);
    Task dump = nfs.dump(mirror.transfer());
    assertThat(nfs.flush(Duration.ZERO).pendingBlocks()).isEqualTo(5);
    assertThat(nfs.lookup(BlockBytes.ids(1, 5)).isEmpty()).isTrue();
    cuda.hold(false);
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    assertThat(nfs.durable(BlockBytes.ids(1, 5)).cardinality()).isEqualTo(5);
    dump.await(PATIENCE).requireOk();
  }

  @Test
  void deadlineBeforeTheEventEndsWhatIsNotWithTheDevice() throws InterruptedException {
    Store nfs = nfs(Map.of("buffer_number", 4, "timeout_ms", 50));
    BlockIds ids = BlockBytes.ids(1, 20);
    long event = cuda.event();
    long waits = cuda.count("cuStreamWaitEvent");
    DeviceMirror mirror = bench.mirror(memory(ids).fill().transfer(), false, event);
    Task dump = nfs.dump(mirror.transfer());
    awaitThat(() -> cuda.count("cuStreamWaitEvent") > waits);
    bench.clock.advance(Duration.ofMillis(51));
    awaitThat(() -> flush(nfs).pendingBlocks() < 20);
    // What was handed to the device cannot be taken back: the memory is in use until then.
    assertThat(dump.check()).isFalse();
    cuda.comes(event);
    TransferResult result = dump.await(PATIENCE);
    assertThat(result.outcome(39)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(result.cause()).hasMessageContaining("was not done within timeout_ms");
    assertThat(nfs.flush(PATIENCE).failedCount()).isPositive();
    assertThat(nfs.lookup(ids).cardinality()).isLessThan(20);
    awaitThat(() -> bench.metrics.gauge("nfs_buffers_in_use") == 0);
  }

  @Test
  void loadEndsAtItsDeadlineThoughTheFileSystemHangs() throws Exception {
    CountDownLatch hang = new CountDownLatch(1);
    CountDownLatch hanging = new CountDownLatch(1);
    Store nfs = nfs(onFilesThatHang("readAt", hanging, hang), Map.of("timeout_ms", 50));
    BlockIds ids = BlockBytes.ids(1, 2);
    bench.dump(nfs, ids).requireOk();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    TransferMemory memory = memory(ids).scribble();
    DeviceMirror mirror = bench.mirror(memory.transfer(), true, 0);
    Task load = nfs.load(mirror.transfer());
    hanging.await();
    bench.clock.advance(Duration.ofMillis(51));
    TransferResult result = load.await(PATIENCE);
    assertThat(result.okCount()).isZero();
    assertThat(result.outcome(0)).isEqualTo(ShardOutcome.EXPIRED);
    // The files still have the buffers, and the engine its memory.
    assertThat(bench.metrics.gauge("nfs_buffers_in_use")).isPositive();
    mirror.bytes(memory.transfer().region(0, 0)).fill((byte) 7);
    long copies = cuda.count("copies");
    hang.countDown();
    requireAllBuffersFree();
    assertThat(cuda.count("copies")).isEqualTo(copies);
    assertThat(mirror.bytes(memory.transfer().region(0, 0)).toArray(ValueLayout.JAVA_BYTE))
        .containsOnly(7);
  }

  @Test
  void dumpThatTheFilesHaveNotBegunFailsAtItsDeadlineThoughTheyHang() throws Exception {
    CountDownLatch hang = new CountDownLatch(1);
    CountDownLatch hanging = new CountDownLatch(1);
    Map<String, Object> oneThread = Map.of("timeout_ms", 50, "transferStreamNumber", 1);
    Store nfs = nfs(onFilesThatHang("writeAt", hanging, hang), oneThread);
    BlockIds ids = BlockBytes.ids(1, 2);
    bench.dump(nfs, ids.slice(0, 1)).requireOk();
    hanging.await();
    bench.dump(nfs, ids.slice(1, 2)).requireOk();
    awaitThat(() -> bench.metrics.gauge("nfs_open_shards") == 4);
    bench.clock.advance(Duration.ofMillis(51));
    List<BlockIds> failed = new ArrayList<>();
    awaitThat(
        () -> {
          FlushResult flushed = flush(nfs);
          failed.add(flushed.failedBlocks());
          return flushed.pendingBlocks() == 1;
        });
    assertThat(failed).contains(ids.slice(1, 2)).doesNotContain(ids, ids.slice(0, 1));
    hang.countDown();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    assertThat(nfs.lookup(ids).stream()).containsExactly(0);
    requireAllBuffersFree();
  }

  @Test
  void partsOfTasksWaitForTheFilesWhateverTheQueueOfTasksHolds() throws Exception {
    CountDownLatch hang = new CountDownLatch(1);
    Map<String, Object> narrow = Map.of("transferStreamNumber", 1, "waiting_queue_depth", 1);
    Store nfs = nfs(onFilesThatHang("writeAt", new CountDownLatch(1), hang), narrow);
    BlockIds ids = BlockBytes.ids(1, 4);
    for (int i = 0; i < 4; i++) {
      bench.dump(nfs, ids.slice(i, i + 1)).requireOk();
    }
    awaitThat(() -> bench.metrics.gauge("nfs_open_shards") == 8);
    hang.countDown();
    assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    assertThat(nfs.durable(ids).cardinality()).isEqualTo(4);
  }

  @Test
  void refusesATaskWhenTooManyWaitForBuffers() throws InterruptedException {
    Store nfs = nfs(Map.of("buffer_number", 4, "waiting_queue_depth", 1));
    BlockIds ids = BlockBytes.ids(1, 6);
    cuda.hold(true);
    List<Task> dumps = new ArrayList<>();
    for (int i = 0; i < 4; i += 2) {
      DeviceMirror mirror = bench.mirror(memory(ids.slice(i, i + 2)).fill().transfer(), false, 0);
      dumps.add(nfs.dump(mirror.transfer()));
    }
    DeviceMirror third = bench.mirror(memory(ids.slice(4, 6)).fill().transfer(), false, 0);
    assertThatThrownBy(() -> nfs.dump(third.transfer()))
        .isInstanceOf(QueueFullException.class)
        .hasMessageContaining("waiting_queue_depth");
    cuda.hold(false);
    for (Task dump : dumps) {
      dump.await(PATIENCE).requireOk();
    }
  }

  /** A store some of whose calls wait. */
  private static Store onFilesThatHang(String call, CountDownLatch hanging, CountDownLatch hang) {
    FileOperations real = new LibcFileOperations();
    FileOperations files =
        (FileOperations)
            Proxy.newProxyInstance(
                FileOperations.class.getClassLoader(),
                new Class<?>[] {FileOperations.class},
                (proxy, method, arguments) -> {
                  if (method.getName().equals(call)) {
                    hanging.countDown();
                    hang.await();
                  }
                  return method.invoke(real, arguments);
                });
    return new NfsStore(files);
  }

  private static FlushResult flush(Store nfs) {
    try {
      return nfs.flush(Duration.ZERO);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "cuMemcpyDtoHAsync, DUMP, 1",
    "cuMemcpyDtoHAsync, DUMP, 3",
    "cuEventRecord, DUMP, 1",
    "cuEventSynchronize, DUMP, 1",
    "cuMemcpyHtoDAsync, LOAD, 1",
    "cuMemcpyHtoDAsync, LOAD, 3",
    "cuEventRecord, LOAD, 1",
    "cuEventSynchronize, LOAD, 1"
  })
  void taskFailsWithTheCauseAndTheNextOneWorks(String call, String operation, int nth)
      throws InterruptedException {
    Store nfs = nfs(Map.of());
    BlockIds ids = BlockBytes.ids(1, 8);
    boolean loads = operation.equals("LOAD");
    if (loads) {
      bench.dump(nfs, ids).requireOk();
      assertThat(nfs.flush(PATIENCE).ok()).isTrue();
    }
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids);
    DeviceMirror mirror = bench.mirror((loads ? memory : memory.fill()).transfer(), loads, 0);
    cuda.fail(call, nth, 1, CUresult.CUDA_ERROR_UNKNOWN);
    TransferResult result =
        (loads ? nfs.load(mirror.transfer()) : nfs.dump(mirror.transfer())).await(PATIENCE);
    assertThat(result.failedCount()).isPositive();
    assertThat(result.cause()).isNotNull().hasMessageContaining(call);
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (result.outcome(shard) == ShardOutcome.OK && loads) {
        memory.check(shard);
      }
    }
    if (!loads) {
      FlushResult flushed = nfs.flush(Duration.ofMillis(1));
      assertThat(flushed.failedCount()).isPositive();
      assertThat(nfs.lookup(ids).cardinality()).isLessThan(8);
      bench.dump(nfs, ids).requireOk();
      assertThat(nfs.flush(PATIENCE).pendingBlocks()).isZero();
    }
    bench.requireLoads(nfs, ids);
    requireAllBuffersFree();
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuInit", "cuMemHostRegister", "cuStreamCreate", "cuEventCreate"})
  void refusesToStartWithoutTheDeviceItMustHave(String call) {
    cuda.fail(call, 1, 1, CUresult.CUDA_ERROR_OPERATING_SYSTEM);
    Map<String, Long> now = cuda.kept();
    assertThatThrownBy(() -> nfs(Map.of()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("nfs_device is cuda")
        .hasMessageContaining(call);
    assertThat(cuda.kept()).isEqualTo(now);
  }

  @Test
  void goesOnWithHostMemoryWhereThereIsNoDeviceAndSaysWhyLater() throws InterruptedException {
    cuda.fail("cuMemHostRegister", 1, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    Store nfs = nfs(Map.of("nfs_device", "auto"));
    BlockIds ids = BlockBytes.ids(1, 2);
    nfs.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    DeviceMirror mirror = bench.mirror(memory(ids).transfer(), true, 0);
    assertThatThrownBy(() -> nfs.load(mirror.transfer()))
        .hasMessageContaining("Nfs moves host memory only")
        .hasMessageContaining("cuMemHostRegister");
  }

  @Test
  void closeOnAnInterruptedThreadLeavesNothingBehind() throws InterruptedException {
    Store nfs = nfs(Map.of());
    bench.dump(nfs, BlockBytes.ids(1, 4)).requireOk();
    Thread.currentThread().interrupt();
    nfs.close();
    assertThat(Thread.interrupted()).as("the interrupt is kept").isTrue();
    awaitThat(() -> nfsThreads().isEmpty());
    // That the device has nothing left is what every test ends with.
  }

  private static List<String> nfsThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("ucm-nfs"))
        .toList();
  }

  private void requireAllBuffersFree() {
    awaitThat(() -> bench.metrics.gauge("nfs_buffers_in_use") == 0);
  }

  private Store nfs(Map<String, Object> more) {
    return nfs(new NfsStore(), more);
  }

  private Store nfs(Store nfs, Map<String, Object> more) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("storage_backends", directory.toString());
    settings.put("transferStreamNumber", 2);
    settings.put("nfs_device", "cuda");
    settings.putAll(more);
    return bench.open(nfs, null, settings);
  }
}

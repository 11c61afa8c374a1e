package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.device.cuda.DeviceBench.LAYOUT;
import static ucm.device.cuda.DeviceBench.PATIENCE;
import static ucm.device.cuda.DeviceBench.awaitThat;
import static ucm.device.cuda.DeviceBench.memory;
import static ucm.device.cuda.DeviceBench.refresh;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import jcuda.driver.CUresult;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.api.ShardOutcome;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.store.cache.CacheStore;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;
import ucm.testkit.fault.MemoryStore;

/** Cache between an engine on a GPU and a next stage: order, faults of every call, and what is left. */
@Timeout(60)
final class CacheOnDeviceTest {

  private static final Duration AT_ONCE = Duration.ofMillis(1);
  private static final int SLOTS = 64;

  private final DeviceBench bench = new DeviceBench();
  private final SimulatedCuda cuda = bench.cuda;

  @BeforeEach
  void copiesTakeTheirTime() {
    cuda.delay(20);
  }

  @AfterEach
  void leavesNothing() {
    bench.close();
  }

  @Test
  void dumpReadsTheMemoryAfterTheEventOfTheEngine() throws InterruptedException {
    Store cache = cache(null, Map.of());
    BlockIds ids = BlockBytes.ids(1, 4);
    TransferMemory memory = memory(ids).scribble();
    long event = cuda.event();
    DeviceMirror mirror = bench.mirror(memory.transfer(), false, event);
    Task dump = cache.dump(mirror.transfer());
    // The engine computes the bytes only now.
    memory.fill();
    refresh(mirror, memory);
    assertThat(dump.check()).isFalse();
    cuda.comes(event);
    dump.await(PATIENCE).requireOk();
    bench.requireLoads(cache, ids);
    assertThat(cuda.count("cuStreamWaitEvent")).isPositive();
  }

  @Test
  void dumpThatWaitsForItsEventHoldsUpNoLoad() throws InterruptedException {
    Store cache = cache(null, Map.of("cache_stream_number", 1));
    BlockIds there = BlockBytes.ids(1, 2);
    bench.dump(cache, there).requireOk();
    long event = cuda.event();
    DeviceMirror late = bench.mirror(memory(BlockBytes.ids(2, 2)).fill().transfer(), false, event);
    Task dump = cache.dump(late.transfer());
    bench.requireLoads(cache, there);
    assertThat(dump.check()).isFalse();
    cuda.comes(event);
    dump.await(PATIENCE).requireOk();
  }

  @Test
  void deadlineBeforeTheEventEndsWhatHasNotBegunAndWaitsForTheRest() throws InterruptedException {
    Store cache = cache(null, Map.of("cache_stream_number", 1, "timeout_ms", 50));
    BlockIds ids = BlockBytes.ids(1, 24);
    TransferMemory memory = memory(ids).fill();
    long event = cuda.event();
    DeviceMirror mirror = bench.mirror(memory.transfer(), false, event);
    long runs = cuda.count("cuStreamWaitEvent");
    Task dump = cache.dump(mirror.transfer());
    awaitThat(() -> cuda.count("cuStreamWaitEvent") >= runs + 4);
    bench.clock.advance(Duration.ofMillis(51));
    awaitThat(() -> bench.metrics.count("cache_expired_shards") > 0);
    // Copies that were handed to the device cannot be taken back: the memory is in use until then.
    assertThat(dump.check()).isFalse();
    cuda.comes(event);
    TransferResult result = dump.await(PATIENCE);
    assertThat(result.failedCount()).isPositive().isLessThan(48);
    mirror.bytes(memory.transfer().region(0, 0)).fill((byte) 9);
    for (int block = 0; block < ids.size(); block++) {
      if (cache.lookup(ids.slice(block, block + 1)).get(0)) {
        bench.requireLoads(cache, ids.slice(block, block + 1));
      }
    }
    requireAllSlotsFree();
  }

  @Test
  void copiesHappenLaterThanTheCall() throws InterruptedException {
    Store cache = cache(null, Map.of());
    cuda.hold(true);
    BlockIds ids = BlockBytes.ids(1, 2);
    DeviceMirror mirror = bench.mirror(memory(ids).fill().transfer(), false, 0);
    Task dump = cache.dump(mirror.transfer());
    assertThatThrownBy(() -> dump.await(AT_ONCE)).isInstanceOf(StoreException.class);
    assertThat(cache.lookup(ids).isEmpty()).isTrue();
    cuda.hold(false);
    dump.await(PATIENCE).requireOk();
    bench.requireLoads(cache, ids);
  }

  @Test
  void readsThroughTheBackendIntoTheDevice() throws InterruptedException {
    MemoryStore.Volume volume = new MemoryStore.Volume();
    BlockIds ids = BlockBytes.ids(1, 20);
    Store first = cache(new MemoryStore(volume), Map.of());
    bench.dump(first, ids).requireOk();
    assertThat(first.flush(PATIENCE).ok()).isTrue();
    first.close();
    Store second = cache(new MemoryStore(volume), Map.of());
    bench.requireLoads(second, ids);
    bench.requireLoads(second, ids);
    assertThat(bench.metrics.count("cache_load_bytes")).isEqualTo(2L * 20 * 8192);
    requireAllSlotsFree();
  }

  @Test
  void hostMemoryAndDeviceMemoryShareOnePool() throws InterruptedException {
    Store cache = cache(null, Map.of());
    BlockIds ids = BlockBytes.ids(1, 3);
    cache.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    bench.requireLoads(cache, ids);
    BlockIds others = BlockBytes.ids(2, 3);
    bench.dump(cache, others).requireOk();
    TransferMemory host = memory(others);
    cache.load(host.transfer()).await(PATIENCE).requireOk();
    host.check();
  }

  @ParameterizedTest
  @CsvSource({
    "cuMemcpyDtoHAsync, DUMP, 1",
    "cuMemcpyDtoHAsync, DUMP, 3",
    "cuStreamWaitEvent, DUMP, 1",
    "cuEventRecord, DUMP, 1",
    "cuEventSynchronize, DUMP, 1",
    "cuMemcpyHtoDAsync, LOAD, 1",
    "cuMemcpyHtoDAsync, LOAD, 3",
    "cuStreamWaitEvent, LOAD, 1",
    "cuEventRecord, LOAD, 1",
    "cuEventSynchronize, LOAD, 2"
  })
  void taskFailsWithTheCauseAndTheNextOneWorks(String call, String operation, int nth)
      throws InterruptedException {
    Store cache = cache(null, Map.of("cache_stream_number", 2));
    BlockIds ids = BlockBytes.ids(1, 8);
    boolean loads = operation.equals("LOAD");
    if (loads) {
      bench.dump(cache, ids).requireOk();
    }
    long event = cuda.event();
    cuda.comes(event);
    TransferMemory memory = TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids);
    DeviceMirror mirror = bench.mirror((loads ? memory : memory.fill()).transfer(), loads, event);
    cuda.fail(call, nth, 1, CUresult.CUDA_ERROR_UNKNOWN);
    TransferResult result =
        (loads ? cache.load(mirror.transfer()) : cache.dump(mirror.transfer())).await(PATIENCE);
    assertThat(result.failedCount()).isPositive();
    assertThat(result.cause())
        .isNotNull()
        .hasMessageContaining(call)
        .hasMessageContaining("999 CUDA_ERROR_UNKNOWN");
    for (int shard = 0; shard < memory.shardCount(); shard++) {
      if (result.outcome(shard) == ShardOutcome.OK && loads) {
        memory.check(shard);
      }
    }
    requireAllSlotsFree();
    if (!loads) {
      assertThat(cache.lookup(ids).cardinality()).isLessThan(8);
      assertThat(cache.flush(PATIENCE).failedCount()).isPositive();
      bench.dump(cache, ids).requireOk();
    }
    bench.requireLoads(cache, ids);
  }

  @Test
  void slotsOfALostDeviceAreNeverUsedAgainAndItsTransfersAreRefused() throws InterruptedException {
    Store cache = cache(null, Map.of("cache_stream_number", 1));
    BlockIds ids = BlockBytes.ids(1, 2);
    cuda.fail("copy", 1, 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
    DeviceMirror mirror =
        bench.mirror(
            TransferMemory.ofBlocks(LAYOUT, Placement.PACKED, ids).fill().transfer(), false, 0);
    TransferResult result = cache.dump(mirror.transfer()).await(PATIENCE);
    assertThat(result.okCount()).isZero();
    assertThat(result.cause()).hasMessageContaining("700 CUDA_ERROR_ILLEGAL_ADDRESS");
    assertThat(bench.metrics.gauge("cache_slots_referenced")).isEqualTo(4);
    assertThat(cache.lookup(ids).isEmpty()).isTrue();
    assertThatThrownBy(() -> cache.load(mirror.transfer()))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("device is lost")
        .hasMessageContaining("CUDA_ERROR_ILLEGAL_ADDRESS");
    cache.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    // The context would go with the process; the simulated one is healed, so that it can be closed.
    cuda.heal();
    cache.close();
    // A copy might still come: the pool stays as it is, for the life of the process.
    bench.keeps("registrations");
    bench.keeps("contexts");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cuInit",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent",
        "cuMemHostRegister",
        "cuCtxSetCurrent",
        "cuStreamCreate",
        "cuEventCreate"
      })
  void refusesToStartWithoutTheDeviceItMustHave(String call) {
    cuda.fail(call, 1, 1, CUresult.CUDA_ERROR_OPERATING_SYSTEM);
    Map<String, Long> now = cuda.kept();
    assertThatThrownBy(() -> cache(null, Map.of("cache_device", "cuda")))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cache_device is cuda")
        .hasMessageContaining(call)
        .hasMessageContaining("304 CUDA_ERROR_OPERATING_SYSTEM");
    assertThat(cuda.kept()).isEqualTo(now);
  }

  @Test
  void goesOnWithHostMemoryWhenTheDeviceFailsAndSaysWhyLater() throws InterruptedException {
    cuda.fail("cuMemHostRegister", 1, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    Store cache = cache(null, Map.of("cache_device", "auto"));
    BlockIds ids = BlockBytes.ids(1, 2);
    cache.dump(memory(ids).fill().transfer()).await(PATIENCE).requireOk();
    DeviceMirror mirror = bench.mirror(memory(ids).transfer(), true, 0);
    assertThatThrownBy(() -> cache.load(mirror.transfer()))
        .hasMessageContaining("moves host memory only")
        .hasMessageContaining("cuMemHostRegister");
  }

  @Test
  void refusesMemoryThatIsNotOfItsDevice() {
    Store cache = cache(null, Map.of());
    MemoryRegion other = MemoryRegion.device(1, 4096, 4096);
    MemoryRegion own = bench.engine.allocate(4096);
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(4096));
    for (MemoryRegion second : List.of(other, host)) {
      Transfer mixed =
          Transfer.packed(LAYOUT)
              .shard(1, 1, 0)
              .piece(own, 0)
              .shard(1, 1, 1)
              .piece(second, 0)
              .build();
      assertThatThrownBy(() -> cache.dump(mixed))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("not all of device 0");
    }
    Transfer waiting = Transfer.packed(LAYOUT).shard(1, 1, 0).piece(host, 0).after(5).build();
    assertThatThrownBy(() -> cache.dump(waiting))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("cannot wait");
    bench.engine.free(own);
  }

  @Test
  void leavesTheDeviceAloneWhenToldTo() {
    Map<String, Long> now = cuda.kept();
    Store cache = cache(null, Map.of("cache_device", "host"));
    assertThat(cuda.kept()).isEqualTo(now);
    DeviceMirror mirror = bench.mirror(memory(BlockBytes.ids(1, 1)).transfer(), true, 0);
    assertThatThrownBy(() -> cache.load(mirror.transfer()))
        .hasMessageContaining("cache_device is host");
  }

  @Test
  void touchingSegmentsAreOneCopyAndThoseAtEqualDistancesAreRows() throws InterruptedException {
    Store cache = cache(null, Map.of("cache_stream_number", 1));
    BlockIds ids = BlockBytes.ids(1, 1);
    long copies = cuda.count("copies");
    // Two tensors of a shard side by side, in a slot as well.
    MemoryRegion whole = bench.engine.allocate(8192);
    Transfer.Builder touching = Transfer.scattered(LAYOUT);
    touching.shard(ids, 0, 0).piece(whole, 0).piece(whole, 2048);
    cache.dump(touching.build()).await(PATIENCE).requireOk();
    assertThat(cuda.count("copies") - copies).isEqualTo(1);
    assertThat(cuda.count("rows")).isZero();
    // Keys and values of a layer apart.
    Transfer.Builder apart = Transfer.scattered(LAYOUT);
    apart.shard(ids, 0, 1).piece(whole, 0).piece(whole, 6000);
    cache.dump(apart.build()).await(PATIENCE).requireOk();
    assertThat(cuda.count("copies") - copies).isEqualTo(2);
    assertThat(cuda.count("rows")).isEqualTo(1);
    bench.engine.free(whole);
  }

  private void requireAllSlotsFree() {
    // A task may end a moment before the device's thread gives up what had expired by then.
    awaitThat(() -> bench.metrics.gauge("cache_slots_referenced") == 0);
  }

  private Store cache(@Nullable Store next, Map<String, Object> more) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("cache_buffer_capacity_gb", SLOTS * 4096.0 / (1L << 30));
    settings.put("cache_device", "cuda");
    settings.putAll(more);
    return bench.open(new CacheStore(), next, settings);
  }
}

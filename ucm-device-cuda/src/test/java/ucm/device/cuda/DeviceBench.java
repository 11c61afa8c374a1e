package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.Transfer;
import ucm.api.TransferResult;
import ucm.api.config.StoreConfig;
import ucm.device.Device;
import ucm.testkit.ManualClock;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.StoreFixture;
import ucm.testkit.TestContext;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** An engine on a simulated GPU, and stores for it, of which nothing may be left after a test. */
final class DeviceBench implements AutoCloseable {

  static final BlockLayout LAYOUT = BlockLayout.uniform(2048, 4096, 2 * 4096);
  static final Duration PATIENCE = Duration.ofSeconds(20);

  final SimulatedCuda cuda = SimulatedCuda.load();
  private final Map<String, Long> before = cuda.kept();
  final Device engine = new CudaDriver().open(0);
  final ManualClock clock = new ManualClock();
  final RecordingMetrics metrics = new RecordingMetrics();

  private final List<Store> stores = new ArrayList<>();
  private final List<DeviceMirror> mirrors = new ArrayList<>();

  /** Opens a store of {@link #LAYOUT}, and the next stage first, if there is one. */
  Store open(Store store, @Nullable Store next, Map<String, Object> more) {
    Map<String, Object> settings = StoreFixture.workerKeys(LAYOUT);
    if (next != null) {
      next.configure(StoreConfig.of(settings));
      next.open(StoreContext.of(null));
      stores.add(next);
    }
    settings.putAll(more);
    StoreConfig config = StoreConfig.of(settings);
    store.configure(config);
    assertThat(config.problems()).isEmpty();
    store.open(new TestContext(next, metrics, clock));
    stores.add(store);
    return store;
  }

  static TransferMemory memory(BlockIds ids) {
    return TransferMemory.ofBlocks(LAYOUT, Placement.SCATTERED, ids);
  }

  DeviceMirror mirror(Transfer transfer, boolean loads, long event) {
    DeviceMirror mirror = new DeviceMirror(cuda, engine, transfer, loads, event);
    mirrors.add(mirror);
    return mirror;
  }

  /** Copies what is in the memory now to the device. */
  static void refresh(DeviceMirror mirror, TransferMemory memory) {
    MemoryRegion region = memory.transfer().region(0, 0);
    mirror.bytes(region).copyFrom(region.segment());
  }

  TransferResult dump(Store store, BlockIds ids) throws InterruptedException {
    DeviceMirror mirror = mirror(memory(ids).fill().transfer(), false, 0);
    return store.dump(mirror.transfer()).await(PATIENCE);
  }

  void requireLoads(Store store, BlockIds ids) throws InterruptedException {
    TransferMemory memory = memory(ids);
    DeviceMirror mirror = mirror(memory.transfer(), true, 0);
    store.load(mirror.transfer()).await(PATIENCE).requireOk();
    memory.check();
  }

  static void awaitThat(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      // The timeout of the test interrupts.
      assertThat(Thread.interrupted()).isFalse();
      Thread.onSpinWait();
    }
  }

  /** One more of these than before the test is kept for the life of the process. */
  void keeps(String what) {
    before.merge(what, 1L, Long::sum);
  }

  /** Closes all, and requires that nothing is left on the device. */
  @Override
  public void close() {
    cuda.hold(false);
    stores.reversed().forEach(Store::close);
    mirrors.forEach(DeviceMirror::free);
    engine.close();
    assertThat(cuda.kept()).isEqualTo(before);
    cuda.requireNoMisuse();
  }
}

package ucm.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.device.Device;
import ucm.store.cache.CacheStore;
import ucm.testkit.MemoryStore;
import ucm.testkit.StoreContract;

/** The contract of a store, for Cache in front of another one and an engine with its memory on a GPU. */
final class CacheOnDeviceContractTest extends StoreContract {

  private static final double GIB = 1L << 30;

  private final SimulatedCuda cuda = SimulatedCuda.load();
  private final MemoryStore.Medium medium = new MemoryStore.Medium();
  private final Map<String, Long> before = cuda.kept();
  private final List<Store> made = new ArrayList<>();
  private final Device device = new CudaDriver().open(0);

  @AfterEach
  void leavesNothingOnTheDevice() {
    // The base class does so as well, but after this.
    made.forEach(Store::close);
    device.close();
    assertThat(cuda.kept()).isEqualTo(before);
    assertThat(cuda.count("unregistered")).isZero();
    cuda.requireNoMisuse();
  }

  @Override
  protected Store newStore() {
    Store store = new OnDeviceStore(cuda, device, new CacheStore());
    made.add(store);
    return store;
  }

  /** It is wrapped. */
  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected @Nullable Store newBackend() {
    return new MemoryStore(medium);
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    long slot = Math.ceilDiv(layout.shardSize(), 4096) * 4096;
    long blocks = Math.max(256, Math.ceilDiv(32L << 20, layout.blockSize()));
    return Map.of(
        "cache_buffer_capacity_gb",
        blocks * layout.shardCount() * slot / GIB,
        "cache_device",
        "cuda");
  }
}

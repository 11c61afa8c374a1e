package ucm.device.cuda;

import java.nio.file.Path;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.cache.CacheStore;
import ucm.testkit.fault.MemoryStore;

/** The contract of a store, for Cache above another one and an engine with its memory on a GPU. */
final class CacheOnDeviceContractTest extends OnDeviceContract {

  private static final double GIB = 1L << 30;

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  @Override
  Store newDeviceStore() {
    return new CacheStore();
  }

  @Override
  protected @Nullable Store newNextStage() {
    return new MemoryStore(volume);
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

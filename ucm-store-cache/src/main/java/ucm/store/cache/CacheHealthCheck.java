package ucm.store.cache;

import java.nio.file.Path;
import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.HostMemory;

/** Checks whether there is memory for the buffer of {@code Cache}. */
public final class CacheHealthCheck implements HealthCheck {

  private static final String SUBJECT = "memory for Cache";
  private static final double GIB = 1L << 30;

  private final HostMemory memory;

  /** Checks this machine. */
  public CacheHealthCheck() {
    this(new HostMemory(Path.of("/")));
  }

  /** Checks a host's limits. */
  CacheHealthCheck(HostMemory memory) {
    this.memory = memory;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    if (!stages.contains("Cache")) {
      return List.of();
    }
    CacheConfig read = CacheConfig.from(config, memory);
    long available = memory.available();
    int pools = read.shared() ? 1 : read.localRanks();
    String found =
        String.format(
            "%s GiB are available; cache_buffer_capacity_gb is %s%s",
            CacheConfig.gib(available),
            read.capacityGb(),
            read.shared()
                ? ", shared by the ranks that are threads of one process; each process of its own"
                    + " has a buffer, unless all meet in ucm serve"
                : ", for each worker, of which local_rank_size says " + read.localRanks());
    return List.of(
        read.capacityGb() * pools * GIB <= available
            ? Finding.ok(SUBJECT, found)
            : Finding.failed(
                SUBJECT,
                found,
                "write cache_buffer_capacity_gb: %s, or use a machine with more memory"
                    .formatted(CacheConfig.fitting(Math.min(available, memory.total()) / pools))));
  }
}

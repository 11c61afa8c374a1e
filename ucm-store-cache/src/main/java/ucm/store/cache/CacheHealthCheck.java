package ucm.store.cache;

import java.nio.file.Path;
import java.util.List;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.cache.config.CacheConfig;
import ucm.store.cache.config.HostMemory;
import ucm.store.cache.shared.SegmentFolder;

/** Checks whether there is memory for the buffer of {@code Cache}. */
public final class CacheHealthCheck implements HealthCheck {

  private static final String SHARED = "/dev/shm for Cache";
  private static final double GIB = 1L << 30;

  private final SegmentFolder folder;
  private final HostMemory memory;

  /** Checks this machine. */
  public CacheHealthCheck() {
    this(SegmentFolder.DEV_SHM, new HostMemory(Path.of("/")));
  }

  /** Checks a folder of segments and a host's limits. */
  CacheHealthCheck(SegmentFolder folder, HostMemory memory) {
    this.folder = folder;
    this.memory = memory;
  }

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    if (!stages.contains("Cache")) {
      return List.of();
    }
    CacheConfig read = CacheConfig.from(config);
    return List.of(read.shared() ? shared(read) : own(read));
  }

  /** Each worker has a buffer. */
  private Finding own(CacheConfig config) {
    String subject = "memory for Cache";
    long available = memory.available();
    String found = CacheConfig.gib(available) + " GiB are available; " + wanted(config);
    return config.capacityGb() * config.localRanks() * GIB <= available
        ? Finding.ok(subject, found)
        : Finding.failed(
            subject, found, "lower cache_buffer_capacity_gb, or use a machine with more memory");
  }

  /** All workers of the node have one. */
  private Finding shared(CacheConfig config) {
    try {
      long free = folder.free();
      long available = memory.available();
      String found =
          CacheConfig.gib(free)
              + " GiB are free in "
              + folder.path()
              + " and "
              + CacheConfig.gib(available)
              + " GiB of memory available; "
              + wanted(config);
      return config.capacityGb() * GIB <= Math.min(free, available)
          ? Finding.ok(SHARED, found)
          : Finding.failed(
              SHARED,
              found,
              "lower cache_buffer_capacity_gb, or enlarge "
                  + folder.path()
                  + " (mount -o remount,size=..., or the container's --shm-size); a buffer that"
                  + " running engines hold takes room there as well");
    } catch (StoreException e) {
      return Finding.failed(
          SHARED, String.valueOf(e.getMessage()), "set share_buffer_enable: false");
    }
  }

  private static String wanted(CacheConfig config) {
    return "cache_buffer_capacity_gb is "
        + config.capacityGb()
        + (config.shared()
            ? ", shared by the workers of the node"
            : ", for each worker, of which local_rank_size says " + config.localRanks());
  }
}

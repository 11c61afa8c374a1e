/**
 * The store {@code Cache}: the stage between the engine's device memory and everything slower.
 *
 * <p>It exports nothing. It keeps shards in a pool of host memory that is allocated once, takes dumps
 * at the speed of a memory copy, writes them on to the next stage in the background, and serves loads
 * from the pool or through it.
 *
 * @provides ucm.api.admin.HealthCheck for the memory of the buffer
 */
@org.jspecify.annotations.NullMarked
module ucm.store.cache {
  requires static org.jspecify;
  requires org.slf4j;
  requires ucm.api;
  requires ucm.device;
  requires ucm.platform;

  provides ucm.api.admin.HealthCheck with
      ucm.store.cache.CacheHealthCheck;
  provides ucm.api.Store with
      ucm.store.cache.CacheStore;
}

package ucm.server.session;

import java.nio.file.Path;
import java.util.function.LongSupplier;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.server.device.SharedDevices;

/**
 * What all engines of a daemon share.
 *
 * @param catalog the stores that are there
 * @param metrics where engines count
 * @param pipelines those that are open
 * @param devices those that the daemon copies with
 * @param segmentPrefix path of staging segments, without what tells them apart
 * @param stagingBytes most bytes of staging for an engine, all its ranks together
 * @param clock monotonic nanoseconds
 */
record ServerContext(
    StoreCatalog catalog,
    MetricsScopes metrics,
    SharedPipelines pipelines,
    SharedDevices devices,
    String segmentPrefix,
    long stagingBytes,
    LongSupplier clock) {

  /** Where a segment is made. */
  Path segmentPath(int generation, int number) {
    return Path.of(segmentPrefix + Integer.toHexString(generation) + "-" + number);
  }
}

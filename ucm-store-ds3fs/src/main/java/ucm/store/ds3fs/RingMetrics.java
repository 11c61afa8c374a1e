package ucm.store.ds3fs;

import ucm.api.StoreMetrics;

/**
 * What rings count.
 *
 * @param directBytes bytes that 3FS moved from or to memory of the upper stage
 * @param copiedBytes bytes that went through the staging memory
 */
record RingMetrics(StoreMetrics.Counter directBytes, StoreMetrics.Counter copiedBytes) {

  static RingMetrics of(StoreMetrics metrics) {
    return new RingMetrics(
        metrics.counter("ds3fs_direct_bytes", "Bytes moved without a copy, in lent memory"),
        metrics.counter("ds3fs_copied_bytes", "Bytes copied through shared memory"));
  }
}

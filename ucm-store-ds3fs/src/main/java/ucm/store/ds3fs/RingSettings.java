package ucm.store.ds3fs;

/**
 * How rings are made.
 *
 * @param entries most requests to 3FS under way on one ring
 * @param depth {@code io_depth} of USRBIO: 0 issues requests at once, n &gt; 0 in batches of exactly n,
 *     n &lt; 0 in batches of at most |n|
 * @param numaId node of the ring's memory; -1 leaves that to the kernel
 */
record RingSettings(int entries, int depth, int numaId) {

  /** Most vectors that a worker has under way. */
  private static final int MAX_VECTORS = 64;

  /** How many vectors a worker moves at once. */
  int vectors() {
    return Math.min(entries, MAX_VECTORS);
  }
}

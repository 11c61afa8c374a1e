package ucm.lite.policy;

import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import ucm.platform.eviction.LruOrder;
import ucm.platform.eviction.S3FifoOrder;

/** The eviction policies that can be simulated. */
public enum SimulatedPolicy {
  /** First in, first out: the circular hand of the original UCM's buffer. */
  FIFO("fifo"),
  /** Least recently used first. */
  LRU("lru"),
  /** S3-FIFO (Yang et al., SOSP'23). */
  S3_FIFO("s3-fifo"),
  /**
   * Belady's optimum as the bound: the most blocks that any policy, knowing the future, could have
   * inside when they are asked for. With ids that are prefix hashes the optimum always keeps whole
   * prefixes, so the bound is reached; otherwise it may be more than any policy can get.
   */
  OPTIMAL("opt");

  private final String key;

  SimulatedPolicy(String key) {
    this.key = key;
  }

  /** The name in tables, files and options: {@code s3-fifo}, for example. */
  public String key() {
    return key;
  }

  /** Finds a policy by its key, in any case. */
  public static Optional<SimulatedPolicy> of(String key) {
    return Arrays.stream(values())
        .filter(policy -> policy.key.equals(key.toLowerCase(Locale.ROOT)))
        .findFirst();
  }

  /** Makes an empty cache for block numbers below {@code blocks}; not for {@link #OPTIMAL}. */
  public BlockCache cache(long capacity, int blocks) {
    int most = (int) Math.min(capacity, blocks);
    return switch (this) {
      case FIFO -> new BlockCache(most, new LruOrder(blocks), /* tellsUses= */ false);
      case LRU -> new BlockCache(most, new LruOrder(blocks), /* tellsUses= */ true);
      case S3_FIFO -> new BlockCache(most, new S3FifoOrder(most), /* tellsUses= */ true);
      case OPTIMAL -> throw new IllegalArgumentException("the optimum is no cache but a bound");
    };
  }
}

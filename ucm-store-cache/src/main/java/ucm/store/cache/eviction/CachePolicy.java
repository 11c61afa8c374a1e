package ucm.store.cache.eviction;

import java.util.Arrays;
import java.util.Locale;

/** The eviction policies to choose from with {@code cache_policy}. */
public enum CachePolicy {
  /** {@link LruOrder}. */
  LRU,
  /** {@link AgedLruOrder}. */
  AGED_LRU,
  /** {@link S3FifoOrder}. */
  S3FIFO;

  /** The word of the configuration. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The words of all. */
  public static String[] words() {
    return Arrays.stream(values()).map(CachePolicy::word).toArray(String[]::new);
  }

  /** The policy of a word, which is one of {@link #words}. */
  public static CachePolicy of(String word) {
    return valueOf(word.toUpperCase(Locale.ROOT));
  }

  /**
   * An empty order.
   *
   * @param capacity entries there are at first
   * @param blocks how many whole blocks there is room for
   */
  public EvictionOrder order(int capacity, int blocks) {
    return switch (this) {
      case LRU -> new LruOrder(capacity);
      case AGED_LRU -> new AgedLruOrder(capacity, blocks);
      case S3FIFO -> new S3FifoOrder(capacity, Math.max(1, blocks - blocks / 10));
    };
  }
}

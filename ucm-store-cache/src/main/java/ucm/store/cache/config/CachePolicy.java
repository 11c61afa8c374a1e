package ucm.store.cache.config;

import java.util.Arrays;
import java.util.Locale;
import ucm.platform.eviction.EvictionOrder;
import ucm.platform.eviction.LruOrder;
import ucm.platform.eviction.S3FifoOrder;

/** The eviction policies to choose from with {@code cache_policy}. */
public enum CachePolicy {
  /** Least recently used; the default. */
  LRU,
  /** Accepted from older configurations, and the same as {@link #LRU}. */
  AGED_LRU,
  /** S3-FIFO of SOSP 2023. */
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
    CachePolicy named = valueOf(word.toUpperCase(Locale.ROOT));
    return named == AGED_LRU ? LRU : named;
  }

  /** An empty order for so many whole blocks. */
  public EvictionOrder order(int blocks) {
    return this == S3FIFO ? new S3FifoOrder(blocks) : new LruOrder(blocks);
  }
}

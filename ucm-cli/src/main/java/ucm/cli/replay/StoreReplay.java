package ucm.cli.replay;

import java.time.Duration;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreException;
import ucm.cli.runtime.EngineMemory;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.connector.HitPolicy;

/**
 * Sends the requests of a trace through a store, one after the other, up to some number of them;
 * closes the store in the end. Used by one thread.
 */
public abstract class StoreReplay implements TraceVisitor, AutoCloseable {

  private static final int FIRST_PAGES = 256;

  final Store store;
  final Duration timeout;
  EngineMemory memory;
  final BlockLayout layout;
  private final long limit;
  private final ConnectorSettings settings;
  private long requests;
  // Of the first request of the trace, for ids that only count.
  private long salt;

  /** With a limit of each task, and settings that say how much of what is found is used. */
  StoreReplay(
      Store store, BlockLayout layout, Duration timeout, long limit, ConnectorSettings settings) {
    this.store = store;
    this.layout = layout;
    this.timeout = timeout;
    this.limit = limit;
    this.settings = settings;
    this.memory = new EngineMemory(layout, FIRST_PAGES);
  }

  @Override
  public final void request(TraceRequest request) {
    if (requests == limit) {
      return;
    }
    if (requests++ == 0) {
      salt = saltOf(request);
    }
    try {
      serve(request, new HitPolicy(settings, request.blockTokens()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new StoreException("the replay was interrupted", e);
    }
  }

  /** Does what an engine does for a request. */
  abstract void serve(TraceRequest request, HitPolicy policy) throws InterruptedException;

  /** How many requests were sent. */
  final long requests() {
    return requests;
  }

  final void makeRoom(int pages) {
    if (pages > memory.pages()) {
      memory.close();
      memory = new EngineMemory(layout, 2 * pages);
    }
  }

  /** The trace's name for a request, or else its number, from 1 on. */
  public static String name(TraceRequest request, long number) {
    return request.requestId().isEmpty() ? "trace-" + number : request.requestId();
  }

  /** The ids under which the blocks of a request of this trace are stored. */
  final BlockIds storeIds(TraceRequest request) {
    return storeIds(request, salt);
  }

  /**
   * What tells the ids of a trace, which may only count from 0, from those of another one: its
   * block size and its first request.
   */
  public static long saltOf(TraceRequest first) {
    long salt = mix(first.blockTokens());
    salt = mix(salt ^ Double.doubleToLongBits(first.timestampMillis()));
    salt = mix(salt ^ first.inputTokens());
    salt = mix(salt ^ first.outputTokens());
    salt = mix(salt ^ first.requestId().hashCode());
    for (int i = 0; i < first.blockCount(); i++) {
      salt = mix(mix(salt ^ first.ids().high(i)) ^ first.ids().low(i));
    }
    return salt;
  }

  /**
   * The ids under which a request's blocks are stored. Ids of traces that count from 0 are told
   * from those of other traces, and spread over all 16 bytes, as hashes are, because stores choose
   * folders by their digits.
   *
   * @param salt of the trace; see {@link #saltOf}
   */
  public static BlockIds storeIds(TraceRequest request, long salt) {
    long[] words = new long[2 * request.blockCount()];
    for (int i = 0; i < request.blockCount(); i++) {
      long high = request.ids().high(i);
      long low = request.ids().low(i);
      words[2 * i] = high == 0 ? mix(low ^ salt) : high;
      words[2 * i + 1] = high == 0 ? mix(~low) : low;
    }
    return BlockIds.wrap(words);
  }

  /** A bijection of 64 bits that spreads them: the finalizer of SplitMix64 (Steele et al. 2014). */
  private static long mix(long value) {
    long z = value + 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  @Override
  public void close() {
    // First: until then it may still move what was under way, from and to the memory.
    store.close();
    memory.close();
  }
}

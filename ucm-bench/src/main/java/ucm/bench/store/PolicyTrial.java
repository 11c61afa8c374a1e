package ucm.bench.store;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import ucm.api.BlockLayout;
import ucm.api.StoreMetrics;
import ucm.cli.replay.TraceReplay;
import ucm.cli.runtime.EngineConfig;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/**
 * The requests of a trace, and how many of their blocks a Cache of some size and policy has when they
 * come. The store is the real one, alone, with blocks of {@value #BLOCK_BYTES} bytes: what is evicted
 * does not depend on the size of a block.
 */
public final class PolicyTrial {

  private static final long BLOCK_BYTES = 64;
  // Each slot of the pool takes whole pages.
  private static final double SLOT_BYTES = 4096;
  private static final double GIB = 1L << 30;

  private final String name;
  private final List<TraceRequest> requests;
  private final long blocks;
  private final long unique;
  private final long bound;

  /** Keeps the requests. */
  public PolicyTrial(String name, List<TraceRequest> requests) {
    this.name = name;
    this.requests = requests;
    Set<Long> seen = new HashSet<>();
    long all = 0;
    long again = 0;
    for (TraceRequest request : requests) {
      long[] words = request.packedBlockIds();
      all += words.length / 2;
      boolean hit = true;
      for (int i = 0; i < words.length; i += 2) {
        // Half an id is enough to count by; ids that count from 0 differ in it as well.
        boolean known = !seen.add(words[i + 1]);
        hit &= known;
        again += hit ? 1 : 0;
      }
    }
    this.blocks = all;
    this.unique = seen.size();
    this.bound = again;
  }

  /** What the trace is called. */
  public String name() {
    return name;
  }

  /** Requests in it. */
  public int requests() {
    return requests.size();
  }

  /** Blocks asked for. */
  public long blocks() {
    return blocks;
  }

  /** Different blocks among them. */
  public long unique() {
    return unique;
  }

  /** The part of the blocks that a cache without a bound has. */
  public double bound() {
    return share(bound);
  }

  /** How many blocks make some percent of the different ones. */
  public long capacity(double percent) {
    return Math.max(1, (long) (unique * percent / 100));
  }

  /** The part of the blocks asked for that are there, with all before them. */
  public double hitRate(StoreCatalog catalog, String policy, long capacity) {
    BlockLayout layout = BlockLayout.uniform(BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES);
    // Half a slot more, so that no rounding takes one away.
    double gib = (capacity + 0.5) * SLOT_BYTES / GIB;
    UcmConfig config =
        UcmConfig.of("Cache", Map.of("cache_buffer_capacity_gb", gib, "cache_policy", policy))
            .with(EngineConfig.of(layout), "engine");
    try (Pipeline pipeline = Pipeline.open(config, catalog);
        TraceReplay replay =
            new TraceReplay(
                pipeline,
                layout,
                EngineConfig.taskTimeout(config),
                requests.size(),
                StoreMetrics.NONE,
                config.settings())) {
      requests.forEach(replay::request);
      return share(replay.hitBlocks());
    }
  }

  private double share(long hits) {
    return blocks == 0 ? 0 : (double) hits / blocks;
  }
}

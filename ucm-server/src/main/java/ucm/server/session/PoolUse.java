package ucm.server.session;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.pipeline.config.UcmConfig;
import ucm.server.protocol.WorkerFields;

/**
 * How an engine uses the pool of {@code Cache}.
 *
 * @param namesBlocks whether it names its blocks by itself: it is on the host, and may have blocks of many sizes
 * @param isMapped whether its workers may map the pool, so that blocks are read there
 * @param isHost whether its KV cache is in host memory
 */
record PoolUse(boolean namesBlocks, boolean isMapped, boolean isHost) {

  private static final String LENT = "cache_buffer_lent";

  /** As long as nothing is known of the workers. */
  static final PoolUse ANY = new PoolUse(false, false, false);

  /** The same of an engine that names its blocks by itself. */
  static final PoolUse NAMED = new PoolUse(true, false, true);

  /** With workers, one of each stage. */
  PoolUse by(List<WorkerFields> stages) {
    return new PoolUse(namesBlocks, true, stages.getFirst().device() == null);
  }

  /** A configuration with what follows from it; one that says itself whether blocks are lent keeps that. */
  UcmConfig config(UcmConfig some) {
    Map<String, Object> own = new LinkedHashMap<>();
    if (namesBlocks) {
      own.put("cache_buffer_divided", true);
    }
    if (isHost && (namesBlocks || isMapped)) {
      own.put("cache_device", "host");
    }
    if (isMapped && !some.connector().containsKey(LENT)) {
      own.put(LENT, true);
    }
    boolean hasPool = some.pipeline().stages().contains("Cache");
    return own.isEmpty() || !hasPool ? some : some.with(own, "ucm serve");
  }
}

package ucm.pipeline.connector;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.StoreMetrics;
import ucm.pipeline.connector.statistics.HitFunnel;
import ucm.pipeline.connector.statistics.HitStatistics;
import ucm.pipeline.connector.statistics.LiteMonitor;

/** Counts and logs what look-ups found. Used by one thread. */
final class LookupStatistics {

  // The lines are read by tools, under the name of the connector.
  private static final Logger LOG = LoggerFactory.getLogger(SchedulerConnector.class);

  private final HitFunnel funnel;
  private final @Nullable LiteMonitor monitor;
  private final StoreMetrics.Counter lookupBlocks;
  private final StoreMetrics.Counter hitBlocks;
  private HitStatistics sums = HitStatistics.NONE;

  /**
   * Counts nothing yet.
   *
   * @param monitor told of requests in lite mode, or null
   */
  LookupStatistics(StoreMetrics metrics, HitFunnel funnel, @Nullable LiteMonitor monitor) {
    this.funnel = funnel;
    this.monitor = monitor;
    this.lookupBlocks =
        metrics.counter("connector_lookup_blocks", "Blocks of prompts looked up outside.");
    this.hitBlocks = metrics.counter("connector_hit_blocks", "Blocks looked up and found outside.");
  }

  /**
   * Counts a look-up that has ended.
   *
   * @return whether it was logged: it found something else than the one before it
   */
  boolean count(PromptLookup ended) {
    int blocks = ended.ids.size();
    int onDevice = ended.onDevice();
    int found = ended.found();
    if (onDevice < blocks) {
      lookupBlocks.add(blocks - onDevice);
      hitBlocks.add(found);
    }
    if (ended.first) {
      int tokens = ended.request.tokens().length;
      funnel.looked(ended.before, tokens, ended.ids, onDevice, found, ended.failed());
    }
    boolean log = blocks > 0 && ended.state.notices(onDevice, found);
    if (log) {
      LOG.info(
          "request_id: {}, total_blocks_num: {}, hit hbm: {}, hit external: {}",
          ended.state.id,
          blocks,
          onDevice,
          found);
    }
    if (ended.first && blocks > 0) {
      sums = sums.plus(blocks, onDevice, found);
      if (monitor != null) {
        logRates(blocks, found);
        monitor.add(ended.ids, ended.request.promptTokens(), sums);
      }
    }
    return log;
  }

  private void logRates(int blocks, int found) {
    if (LOG.isInfoEnabled()) {
      LOG.info(
          String.format(
              Locale.ROOT,
              "req external hit rate: %.2f, total external hit rate: %.2f",
              (double) found / blocks,
              sums.externalHitRate()));
    }
  }

  HitStatistics sums() {
    return sums;
  }
}

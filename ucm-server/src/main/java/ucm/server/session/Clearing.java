package ucm.server.session;

import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.FlushResult;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.admin.Clearable;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories.Observer;
import ucm.api.config.StoreConfig;
import ucm.server.session.SharedPipelines.Opened;

/**
 * Empties open pipelines while engines use them: what is being written gets there first, then each stage forgets
 * its blocks, the last one first, so that none comes back from below. Used by one thread.
 */
final class Clearing {

  private static final Logger LOG = LoggerFactory.getLogger(Clearing.class);
  private static final Duration FLUSH = Duration.ofSeconds(60);
  private static final int AT_ONCE = 1024;

  private final Observer observer;
  // Blocks that are not removed yet, two words each.
  private final long[] batch = new long[2 * AT_ONCE];
  private int batched;
  private final Set<String> kept = new LinkedHashSet<>();
  private long removed;
  private long left;

  /** @param observer is told how many blocks are gone, and may end the work */
  Clearing(Observer observer) {
    this.observer = observer;
  }

  /** Empties them; what was done is the same as a report. */
  Map<String, Object> run(List<Opened> all) throws InterruptedException {
    for (Opened opened : all) {
      FlushResult _ = opened.pipeline().flush(FLUSH);
    }
    for (Opened opened : all) {
      List<Store> stages = opened.pipeline().stages();
      for (int i = stages.size() - 1; i >= 0 && !observer.isStopped(); i--) {
        try {
          clear(stages.get(i), opened.config().storeConfig());
        } catch (StoreClosedException e) {
          LOG.debug("{} was closed meanwhile", opened.pipeline());
        }
      }
    }
    Map<String, Object> report = new LinkedHashMap<>();
    report.put("pipelines", all.stream().map(one -> one.pipeline().spec().toString()).toList());
    report.put("removed_blocks", removed);
    report.put("left_blocks", left);
    report.put("kept_stages", List.copyOf(kept));
    report.put("complete", left == 0 && kept.isEmpty() && !observer.isStopped());
    return report;
  }

  private void clear(Store stage, StoreConfig config) {
    if (stage instanceof DirectoryStore directories && stage.canRemove()) {
      directories
          .directories(config)
          .list(
              observer,
              block -> {
                batch[2 * batched] = block.idHigh();
                batch[2 * batched + 1] = block.idLow();
                if (++batched == AT_ONCE) {
                  remove(stage);
                }
              });
      remove(stage);
    } else if (stage instanceof Clearable forgetful) {
      forgetful.clear();
    } else if (stage.keepsBytes()) {
      kept.add(stage.name());
    }
  }

  private void remove(Store stage) {
    if (batched > 0 && !observer.isStopped()) {
      int gone = stage.remove(BlockIds.wrap(Arrays.copyOf(batch, 2 * batched))).cardinality();
      removed += gone;
      left += batched - gone;
      observer.at(removed, 0);
    }
    batched = 0;
  }
}

package ucm.cli.replay;

import java.util.LinkedHashMap;
import java.util.Map;
import ucm.api.BlockIds;

/**
 * Which blocks an engine with room for some would still have on its device: the least recently used
 * ones are forgotten. No bytes. Used by one thread.
 */
final class SimulatedHbm {

  private final LinkedHashMap<BlockIds, Boolean> blocks;

  SimulatedHbm(int capacity) {
    this.blocks =
        new LinkedHashMap<>(16, 0.75f, true) {
          private static final long serialVersionUID = 1;

          @Override
          protected boolean removeEldestEntry(Map.Entry<BlockIds, Boolean> eldest) {
            return size() > capacity;
          }
        };
  }

  /** How many blocks of a prompt from the first one on are there; then all of them are. */
  int serve(BlockIds ids) {
    int run = 0;
    while (run < ids.size() && blocks.containsKey(ids.slice(run, run + 1))) {
      run++;
    }
    // The last block first, so that leaves are forgotten before roots.
    for (int i = ids.size() - 1; i >= 0; i--) {
      blocks.put(ids.slice(i, i + 1), true);
    }
    return run;
  }
}

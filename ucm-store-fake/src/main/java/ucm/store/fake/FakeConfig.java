package ucm.store.fake;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * What {@link FakeStore} is configured for.
 *
 * @param layout empty when the configuration has errors
 * @param bufferNumber how many blocks it knows at the most
 * @param scheduler whether it looks up only
 */
record FakeConfig(Optional<BlockLayout> layout, int bufferNumber, boolean scheduler) {

  static final ConfigKey<Integer> BUFFER_NUMBER =
      ConfigKey.integer("buffer_number")
          .range(1, 1 << 28)
          .defaultTo(1 << 20)
          .unit("blocks")
          .doc(
              "How many blocks Fake remembers; the least recently used one makes room. Each takes"
                  + " 48 to 96 bytes of heap, taken when the store opens.");

  static List<ConfigKey<?>> keys() {
    List<ConfigKey<?>> keys = new ArrayList<>(CommonKeys.LAYOUT_KEYS);
    keys.add(CommonKeys.DEVICE_ID);
    keys.add(BUFFER_NUMBER);
    return List.copyOf(keys);
  }

  static FakeConfig from(StoreConfig config) {
    int bufferNumber = config.get(BUFFER_NUMBER);
    boolean scheduler = config.get(CommonKeys.DEVICE_ID) < 0;
    return new FakeConfig(CommonKeys.layout(config), bufferNumber, scheduler);
  }
}

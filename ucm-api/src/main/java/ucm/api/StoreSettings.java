package ucm.api;

import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

/**
 * What {@link AbstractStore} reads of the keys that its subclass lists.
 *
 * @param layout null without keys of a layout, and when they are wrong
 * @param isScheduler whether the store looks up and moves no data
 * @param timeoutNanos the time of a task
 * @param maxTasks tasks in flight at the most
 * @param maxShards shards of all of them at the most; a task of more may be in flight alone
 */
record StoreSettings(
    @Nullable BlockLayout layout,
    boolean isScheduler,
    long timeoutNanos,
    int maxTasks,
    int maxShards) {

  private static final int DEFAULT_TIMEOUT_MS = 30_000;

  static StoreSettings read(StoreConfig config, List<ConfigKey<?>> keys) {
    return new StoreSettings(
        own(keys, CommonKeys.BLOCK_SIZE).flatMap(_ -> CommonKeys.layout(config)).orElse(null),
        own(keys, CommonKeys.DEVICE_ID).map(config::get).orElse(0) < 0,
        TimeUnit.MILLISECONDS.toNanos(
            own(keys, CommonKeys.TIMEOUT_MS).map(config::get).orElse(DEFAULT_TIMEOUT_MS)),
        own(keys, CommonKeys.WAITING_QUEUE_DEPTH).map(config::get).orElse(Integer.MAX_VALUE),
        own(keys, CommonKeys.RUNNING_QUEUE_DEPTH).map(config::get).orElse(Integer.MAX_VALUE));
  }

  /** The key of this name in the store's list; it may have a default of its own. */
  @SuppressWarnings("unchecked")
  private static <T> Optional<ConfigKey<T>> own(List<ConfigKey<?>> keys, ConfigKey<T> common) {
    return keys.stream()
        .filter(key -> key.name().equals(common.name()))
        .map(key -> (ConfigKey<T>) key)
        .findFirst();
  }

  /**
   * Checks that a store can move a transfer.
   *
   * @param store its name
   * @param takesDeviceMemory whether it moves other than host memory
   * @throws StoreException when it cannot
   */
  void require(String store, Transfer transfer, boolean takesDeviceMemory) {
    if (isScheduler) {
      throw new StoreException(
          store
              + " has the scheduler role (device_id: -1), which looks up and moves no data: set"
              + " device_id to that of the worker");
    }
    if (layout != null && !transfer.layout().equals(layout)) {
      throw new StoreException(
          "a transfer of "
              + transfer.layout()
              + " does not fit "
              + store
              + ", which is configured for "
              + layout);
    }
    if (!takesDeviceMemory && !transfer.isHost()) {
      throw new StoreException(
          store
              + " moves host memory, and the transfer names memory of a device: put an upper stage"
              + " that copies it, as in Cache|"
              + store);
    }
  }
}

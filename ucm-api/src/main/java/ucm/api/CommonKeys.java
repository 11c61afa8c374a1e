package ucm.api;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import ucm.api.config.ConfigKey;
import ucm.api.config.ConfigProblem;
import ucm.api.config.StoreConfig;

/**
 * Keys that several stores read. A store lists those it reads among its {@link Store#configKeys()}.
 *
 * <p>The layout keys come from the engine, which knows the model; an operator does not write them.
 */
public final class CommonKeys {

  /** Name that instances sharing blocks agree on. */
  public static final ConfigKey<String> UNIQUE_ID =
      ConfigKey.text("unique_id")
          .defaultTo("ucm")
          .doc("Set by the engine: names the instance; workers with one name may share memory.");

  /** Ordinal of the device, or -1. */
  public static final ConfigKey<Integer> DEVICE_ID =
      ConfigKey.integer("device_id")
          .range(-1, 1023)
          .defaultTo(-1)
          .doc(
              "Set by the engine: the device this worker serves; -1 is the scheduler, which looks"
                  + " up and moves no data.");

  /** Workers on this node. */
  public static final ConfigKey<Integer> LOCAL_RANK_SIZE =
      ConfigKey.integer("local_rank_size")
          .range(1, 1024)
          .defaultTo(1)
          .unit("workers")
          .doc("Set by the engine: how many workers of the instance run on this node.");

  /** Size of each tensor of a shard. */
  public static final ConfigKey<Long> TENSOR_SIZE =
      ConfigKey.longInteger("tensor_size")
          .atLeast(1)
          .unit("bytes")
          .defaultDescribed("shard_size")
          .doc("Set by the engine: size of each tensor of a shard.");

  /** Sizes of the tensors of a shard. */
  public static final ConfigKey<List<Long>> TENSOR_SIZE_LIST =
      ConfigKey.longIntegers("tensor_size_list")
          .atLeast(1)
          .unit("bytes")
          .doc(
              "Set by the engine instead of tensor_size when the tensors of a shard differ; their"
                  + " sum is shard_size.");

  /** Size of a shard. */
  public static final ConfigKey<Long> SHARD_SIZE =
      ConfigKey.longInteger("shard_size")
          .atLeast(1)
          .unit("bytes")
          .defaultDescribed("block_size")
          .doc("Set by the engine: size of a shard, a multiple of tensor_size.");

  /** Size of a block. */
  public static final ConfigKey<Long> BLOCK_SIZE =
      ConfigKey.longInteger("block_size")
          .atLeast(1)
          .unit("bytes")
          .require()
          .doc("Set by the engine: size of a block, a multiple of shard_size.");

  /** Directories of a storage stage. */
  public static final ConfigKey<List<String>> STORAGE_BACKENDS =
      ConfigKey.paths("storage_backends")
          .require()
          .doc("Directories that hold the blocks; a block's id chooses one of them.");

  /** Whether to pass by the page cache. */
  public static final ConfigKey<Boolean> IO_DIRECT =
      ConfigKey.flag("io_direct")
          .defaultTo(false)
          .doc("Read and write files with O_DIRECT, past the page cache.");

  /** Deadline of every task. */
  public static final ConfigKey<Integer> TIMEOUT_MS =
      ConfigKey.integer("timeout_ms")
          .range(1, 86_400_000)
          .defaultTo(30_000)
          .unit("ms")
          .doc("Deadline of every task.");

  /** Bound of the tasks not started. */
  public static final ConfigKey<Integer> WAITING_QUEUE_DEPTH =
      ConfigKey.integer("waiting_queue_depth")
          .range(1, 1 << 20)
          .defaultTo(8192)
          .unit("tasks")
          .doc("How many tasks may wait; one more is refused at once.");

  /** Bound of the shards under way. */
  public static final ConfigKey<Integer> RUNNING_QUEUE_DEPTH =
      ConfigKey.integer("running_queue_depth")
          .range(1, 1 << 24)
          .defaultTo(524_288)
          .unit("shards")
          .doc("How many shards of accepted tasks may be under way; more are refused at once.");

  /** Cores for the threads of a stage. */
  public static final ConfigKey<List<Long>> CPU_AFFINITY_CORES =
      ConfigKey.longIntegers("cpu_affinity_cores")
          .range(0, 65_535)
          .defaultTo(List.of())
          .doc("Cores the stages' threads run on; empty leaves it to the kernel.");

  /** The keys {@link #layout} reads. */
  public static final List<ConfigKey<?>> LAYOUT_KEYS =
      List.of(TENSOR_SIZE, TENSOR_SIZE_LIST, SHARD_SIZE, BLOCK_SIZE);

  /** The keys that {@link AbstractStore} reads for a store that bounds its tasks, and the layout's. */
  private static final List<ConfigKey<?>> STORE_KEYS =
      Stream.concat(LAYOUT_KEYS.stream(), Stream.of(DEVICE_ID, TIMEOUT_MS, WAITING_QUEUE_DEPTH))
          .toList();

  // A layout beyond these is a mistake in a unit; arrays of such a length would exhaust the heap.
  private static final long MOST_TENSORS = 1 << 16;
  private static final long MOST_SHARDS = 1 << 20;

  private CommonKeys() {}

  /**
   * A store's own keys and those that {@link AbstractStore} reads: the layout, {@link #DEVICE_ID}, {@link
   * #TIMEOUT_MS} and {@link #WAITING_QUEUE_DEPTH}.
   */
  public static List<ConfigKey<?>> with(ConfigKey<?>... own) {
    return Stream.concat(Stream.of(own), STORE_KEYS.stream()).toList();
  }

  /**
   * Reads the block layout. Errors are recorded in {@code config}.
   *
   * @return the layout, or nothing when the keys are missing, bad or do not fit one another
   */
  public static Optional<BlockLayout> layout(StoreConfig config) {
    long block = config.get(BLOCK_SIZE);
    List<Long> list = config.find(TENSOR_SIZE_LIST).orElse(List.of());
    long sum = list.stream().mapToLong(Long::longValue).sum();
    long shard = config.find(SHARD_SIZE).orElse(list.isEmpty() ? block : sum);
    long tensor = config.find(TENSOR_SIZE).orElse(shard);
    if (config.problems().stream().anyMatch(CommonKeys::isLayoutError)) {
      return Optional.empty();
    }
    if (config.isSet(TENSOR_SIZE_LIST) && config.isSet(TENSOR_SIZE)) {
      config.reject(TENSOR_SIZE_LIST, "set together with tensor_size; keep one of the two");
    } else if (config.isSet(TENSOR_SIZE_LIST) && sum != shard) {
      config.reject(
          TENSOR_SIZE_LIST, "sums to " + sum + " bytes; the sum must be shard_size " + shard);
    } else if (tensor > shard || shard % tensor != 0) {
      config.reject(
          TENSOR_SIZE, "is " + tensor + "; shard_size " + shard + " must be a multiple of it");
    } else if (shard > block || block % shard != 0) {
      config.reject(
          SHARD_SIZE, "is " + shard + "; block_size " + block + " must be a multiple of it");
    } else if (shard / tensor > MOST_TENSORS) {
      config.reject(
          TENSOR_SIZE,
          "is " + tensor + "; a shard would have more than " + MOST_TENSORS + " tensors");
    } else if (block / shard > MOST_SHARDS) {
      config.reject(
          SHARD_SIZE, "is " + shard + "; a block would have more than " + MOST_SHARDS + " shards");
    } else {
      return Optional.of(
          list.isEmpty()
              ? BlockLayout.uniform(tensor, shard, block)
              : BlockLayout.of(list.stream().mapToLong(Long::longValue).toArray(), block));
    }
    return Optional.empty();
  }

  /** The values of the layout keys, by name, as an engine gives them for a layout; the caller's. */
  public static Map<String, Object> values(BlockLayout layout) {
    Map<String, Object> values = new TreeMap<>();
    List<Long> tensors =
        IntStream.range(0, layout.tensorCount()).mapToObj(layout::tensorSize).toList();
    if (tensors.stream().distinct().count() == 1) {
      values.put(TENSOR_SIZE.name(), tensors.getFirst());
    } else {
      values.put(TENSOR_SIZE_LIST.name(), tensors);
    }
    values.put(SHARD_SIZE.name(), layout.shardSize());
    values.put(BLOCK_SIZE.name(), layout.blockSize());
    return values;
  }

  private static boolean isLayoutError(ConfigProblem problem) {
    return problem.isError()
        && LAYOUT_KEYS.stream().anyMatch(key -> key.name().equals(problem.key()));
  }
}

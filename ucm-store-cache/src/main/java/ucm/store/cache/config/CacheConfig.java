package ucm.store.cache.config;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.platform.device.EngineDevice;
import ucm.platform.device.SlotMemory;

/**
 * The checked configuration of a Cache store.
 *
 * @param capacityGb size of the pool in GiB
 * @param policy which blocks leave a full pool first
 * @param device whose memory the engine may name; copies of host memory have its threads and cores, too
 * @param loadNextOnly whether loads and look-ups pass by what is in the pool
 * @param uniqueId names the instance
 * @param localRanks workers of the instance on this node
 * @param shared whether the stores of the instance in this process share one pool
 * @param divided whether the pools of this process divide the capacity of one
 * @param lent whether engines read blocks in the pool
 * @param blockLayout how blocks are cut; null for a scheduler, which moves none
 */
public record CacheConfig(
    double capacityGb,
    CachePolicy policy,
    EngineDevice.Choice device,
    boolean loadNextOnly,
    int timeoutMs,
    String uniqueId,
    int localRanks,
    boolean shared,
    boolean divided,
    boolean lent,
    @Nullable BlockLayout blockLayout) {

  static final ConfigKey<Double> CAPACITY_GB =
      ConfigKey.number("cache_buffer_capacity_gb")
          .above(0)
          .atMost(1 << 20)
          .unit("GiB")
          .defaultDescribed(
              "256; when not shared 32, or what a lower stage suggests; a quarter of the memory at"
                  + " most")
          .doc(
              "Host memory for the buffer pool, fractions allowed; refused at start when that much"
                  + " is not available. Each worker has a pool of its own unless it is shared.");

  static final ConfigKey<Double> BUFFER_SIZE =
      ConfigKey.number("buffer_size")
          .above(0)
          .unit("GiB; from 1048576 on, bytes")
          .doc(
              "Another name of the original for cache_buffer_capacity_gb, which comes first."
                  + " A lower stage may suggest its default.");

  static final ConfigKey<Boolean> SHARE =
      ConfigKey.flag("share_buffer_enable")
          .defaultTo(false)
          .doc(
              "Keep one buffer for the stores of a process that have the same unique_id, instead of"
                  + " one for each. For models whose ranks load the same blocks (MLA); an engine"
                  + " that knows its model sets it. Ranks in processes of their own share one"
                  + " through ucm serve.");

  static final ConfigKey<Boolean> DIVIDE =
      ConfigKey.flag("cache_buffer_divided")
          .defaultTo(false)
          .doc(
              "Have the buffers of a process, whatever their block sizes, take the memory of one:"
                  + " of the largest cache_buffer_capacity_gb each has as many blocks as the"
                  + " others. Only with cache_device host, and not for a shared one. ucm serve sets"
                  + " both for engines that name their blocks by themselves, as SGLang does.");

  static final ConfigKey<Boolean> LEND =
      ConfigKey.flag("cache_buffer_lent")
          .defaultTo(false)
          .doc(
              "Have the buffer in memory that other processes of the user can map, so that an"
                  + " engine reads blocks where they are. ucm serve sets it for engines whose KV"
                  + " cache is in host memory, or which it copies to their GPUs.");

  static final ConfigKey<Integer> STREAMS =
      ConfigKey.integer("cache_stream_number")
          .range(1, 32)
          .defaultTo(4)
          .unit("threads")
          .doc(
              "Most copies between device and buffer at once; where the device is host memory,"
                  + " never more than there are processors. On a GPU: streams of each direction,"
                  + " with a thread each.");

  static final ConfigKey<String> DEVICE =
      ConfigKey.choice("cache_device", "auto", "host", "cuda")
          .defaultTo("auto")
          .doc(
              "Whose memory the engine hands in. auto: the memory of GPU device_id as well where"
                  + " one can be used, and host memory always; cuda: refuse to start without that"
                  + " GPU; host: leave the GPU alone.");

  static final ConfigKey<String> POLICY =
      ConfigKey.choice("cache_policy", CachePolicy.words())
          .defaultTo(CachePolicy.LRU.word())
          .doc(
              "Which blocks leave a full buffer first: lru, the least recently used; s3fifo,"
                  + " S3-FIFO of SOSP 2023. aged_lru, of older configurations, is taken for lru.");

  static final ConfigKey<Boolean> USE_GDR =
      ConfigKey.flag("use_gdr")
          .defaultTo(false)
          .doc(
              "GPUDirect between device and storage, past host memory. No stage can do it: only"
                  + " false is accepted.");

  static final ConfigKey<Boolean> LOAD_BACKEND_ONLY =
      ConfigKey.flag("cache_load_backend_only")
          .defaultTo(false)
          .doc(
              "For diagnosis: every load and look-up asks the next stage, whatever is in the"
                  + " buffer.");

  /** All keys, in the order of the reference page. */
  public static final List<ConfigKey<?>> KEYS =
      List.of(
          CAPACITY_GB,
          BUFFER_SIZE,
          SHARE,
          DIVIDE,
          LEND,
          CommonKeys.WAITING_QUEUE_DEPTH,
          CommonKeys.RUNNING_QUEUE_DEPTH,
          STREAMS,
          POLICY,
          DEVICE,
          USE_GDR,
          LOAD_BACKEND_ONLY,
          CommonKeys.TIMEOUT_MS,
          CommonKeys.DEVICE_ID,
          CommonKeys.UNIQUE_ID,
          CommonKeys.LOCAL_RANK_SIZE,
          CommonKeys.CPU_AFFINITY_CORES,
          CommonKeys.TENSOR_SIZE,
          CommonKeys.TENSOR_SIZE_LIST,
          CommonKeys.SHARD_SIZE,
          CommonKeys.BLOCK_SIZE);

  private static final double PRIVATE_GB = 32;
  private static final double FIRST_BYTES = 1 << 20;
  private static final double SHARED_GB = 256;
  private static final double GIB = 1L << 30;

  /**
   * Reads and checks the keys; faults are recorded in {@code config}.
   *
   * @return the values, which must not be used when an error was recorded
   */
  public static CacheConfig from(StoreConfig config) {
    return from(config, new HostMemory(Path.of("/")));
  }

  /** The same on a host of its own memory. */
  public static CacheConfig from(StoreConfig config, HostMemory memory) {
    int deviceId = config.get(CommonKeys.DEVICE_ID);
    boolean shared = config.get(SHARE);
    boolean scheduler = deviceId == -1;
    // A scheduler is often configured before the sizes are known, and needs none.
    Optional<BlockLayout> layout =
        scheduler && !config.isSet(CommonKeys.BLOCK_SIZE)
            ? Optional.empty()
            : CommonKeys.layout(config);
    CacheConfig read =
        new CacheConfig(
            capacityGb(config, shared, memory.total()),
            CachePolicy.of(config.get(POLICY)),
            new EngineDevice.Choice(
                "Cache",
                DEVICE.name(),
                config.get(DEVICE),
                deviceId,
                config.get(STREAMS),
                config.get(CommonKeys.CPU_AFFINITY_CORES)),
            config.get(LOAD_BACKEND_ONLY),
            config.get(CommonKeys.TIMEOUT_MS),
            config.get(CommonKeys.UNIQUE_ID),
            config.get(CommonKeys.LOCAL_RANK_SIZE),
            shared,
            config.get(DIVIDE),
            config.get(LEND),
            layout.orElse(null));
    if (config.get(POLICY).equals(CachePolicy.AGED_LRU.word())) {
      config.warn(POLICY, "is aged_lru, which is no policy of its own any more: lru is used");
      config.settle(POLICY, CachePolicy.LRU.word());
    }
    if (config.get(USE_GDR)) {
      config.reject(
          USE_GDR,
          "is true, and missing is a store that moves between GPU and storage without host memory:"
              + " no stage of this UCM does; what this machine lacks besides (nvidia_peermem,"
              + " nvidia_fs, RDMA adapters) is told by: ucm doctor --config FILE; set it to false");
    }
    if (!scheduler && layout.isPresent()) {
      read.checkCapacity(config);
    }
    return read;
  }

  private static double capacityGb(StoreConfig config, boolean shared, long total) {
    Optional<Double> capacity = config.find(CAPACITY_GB);
    Optional<Double> size = config.find(BUFFER_SIZE);
    if (capacity.isPresent() && size.isPresent()) {
      config.warn(BUFFER_SIZE, "has no effect beside " + CAPACITY_GB.name() + ": remove one");
    }
    Optional<Double> set = capacity.or(() -> size.map(CacheConfig::inGib));
    if (capacity.isEmpty() && size.isPresent()) {
      config.settle(CAPACITY_GB.name(), set.orElseThrow(), config.origin(BUFFER_SIZE));
    }
    if (set.isPresent()) {
      if (set.get() * GIB > total) {
        config.warn(
            capacity.isPresent() ? CAPACITY_GB : BUFFER_SIZE,
            "is %s GiB, and this machine has %s: no pipeline opens here with it; write %s: %s"
                .formatted(
                    plain(set.get()),
                    plain(total / GIB),
                    CAPACITY_GB.name(),
                    plain(fitting(total))));
      }
      return set.get();
    }
    Optional<Double> suggested =
        shared ? Optional.empty() : config.suggestion(BUFFER_SIZE).map(CacheConfig::inGib);
    double most = suggested.orElse(shared ? SHARED_GB : PRIVATE_GB);
    int pools = shared ? 1 : config.get(CommonKeys.LOCAL_RANK_SIZE);
    double chosen = Math.min(most, fitting(total / pools));
    if (!config.isSet(CAPACITY_GB) && !config.isSet(BUFFER_SIZE)) {
      config.settle(CAPACITY_GB, chosen);
    }
    return chosen;
  }

  private static double inGib(double written) {
    return written < FIRST_BYTES ? written : written / GIB;
  }

  /** GiB of a pool that leaves room on a machine: a quarter of its memory, in tenths where these are enough. */
  public static double fitting(long total) {
    double quarter = total / GIB / 4;
    double tenths = Math.floor(quarter * 10) / 10;
    return tenths > 0 ? tenths : quarter;
  }

  private static String plain(double gib) {
    return BigDecimal.valueOf(gib)
        .setScale(1, RoundingMode.FLOOR)
        .stripTrailingZeros()
        .toPlainString();
  }

  /**
   * How blocks are cut.
   *
   * @throws IllegalStateException for a scheduler without sizes
   */
  public BlockLayout layout() {
    if (blockLayout == null) {
      throw new IllegalStateException("Cache has no block layout: block_size is not set");
    }
    return blockLayout;
  }

  /** Bytes from one slot of the pool to the next. */
  public long stride() {
    return SlotMemory.stride(layout().shardSize());
  }

  /** Whether the pool divides its memory with others: no GPU may have it pinned. */
  public boolean isDividable() {
    return divided && !shared && device.wanted().equals("host");
  }

  /** Whether engines may read the blocks in the pool: their shards can lie one behind the other. */
  public boolean isLendable() {
    return lent
        && !loadNextOnly
        && (layout().shardCount() == 1 || layout().shardSize() == stride());
  }

  /** Bytes of the pool. */
  public long capacityBytes() {
    return (long) (capacityGb * GIB);
  }

  /** How many slots fit into the capacity; of whole blocks, where these are to lie in one piece. */
  public long slots() {
    long slots = capacityBytes() / stride();
    return isLendable() ? slots - slots % layout().shardCount() : slots;
  }

  private void checkCapacity(StoreConfig config) {
    long slots = slots();
    if (slots < 1) {
      config.reject(
          CAPACITY_GB,
          ("is %s GiB and holds no shard of %s bytes, which takes a slot of %s; a block takes %s"
                  + " GiB: raise it")
              .formatted(
                  capacityGb,
                  layout().shardSize(),
                  stride(),
                  gib(layout().shardCount() * stride())));
    } else if (slots > Integer.MAX_VALUE) {
      config.reject(
          CAPACITY_GB,
          ("is %s GiB, which is %s slots of %s bytes; at most %s are possible: lower it, or use"
                  + " larger shards")
              .formatted(capacityGb, slots, stride(), Integer.MAX_VALUE));
    } else if (slots < layout().shardCount()) {
      config.warn(
          CAPACITY_GB,
          ("is %s GiB and holds %s shards, less than the %s of one block: no block will ever be"
                  + " found in the buffer")
              .formatted(capacityGb, slots, layout().shardCount()));
    }
  }

  /** Bytes in GiB, as messages show them. */
  public static String gib(long bytes) {
    return Double.toString(Math.ceil(bytes / GIB * 1000) / 1000);
  }
}

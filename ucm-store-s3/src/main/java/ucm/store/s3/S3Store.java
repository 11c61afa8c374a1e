package ucm.store.s3;

import java.time.Duration;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.AbstractStore;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.IndexLookup;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreName;
import ucm.api.Transfer;
import ucm.api.TransferTask;
import ucm.api.admin.AddressedStore;
import ucm.api.admin.StoreDirectories;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.store.s3.admin.BucketDirectories;
import ucm.store.s3.block.BlockDump;
import ucm.store.s3.block.BlockLoad;
import ucm.store.s3.block.BlockLookup;
import ucm.store.s3.block.BlockRefresh;
import ucm.store.s3.block.Bucket;
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.Drafts;
import ucm.store.s3.block.KnownBlocks;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.block.RequestWindow;
import ucm.store.s3.block.S3Metrics;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * Keeps blocks as objects of a bucket, one per block, for engines of more than one machine. A last stage, for
 * host memory; a local tier above it answers what was used lately, as in {@code Cache|Posix|S3}.
 *
 * <p>A block shows when its object is stored, which is at once. Whole blocks go from where they lie to the
 * server; one that comes shard by shard is put together in memory first. A server that does not answer is left
 * alone for a while: look-ups find nothing, and moves are refused.
 */
@StoreName("S3")
public final class S3Store extends AbstractStore implements IndexLookup, AddressedStore {

  private static final Logger LOG = LoggerFactory.getLogger(S3Store.class);
  private static final int MOST_WORKERS = 4;
  private static final int REFRESH_ONE_IN = 20;
  private static final Duration REFRESH_AFTER = Duration.ofHours(1);
  private static final Duration LEASE = Duration.ofMinutes(10);

  private record OpenStore(
      Bucket bucket, BlockLookup lookup, Drafts drafts, ScheduledExecutorService collector) {}

  private @Nullable S3Config config;
  private volatile @Nullable OpenStore opened;

  /** A store that is not configured. */
  public S3Store() {}

  @Override
  public List<ConfigKey<?>> configKeys() {
    return S3Config.KEYS;
  }

  @Override
  public String scheme() {
    return "s3";
  }

  @Override
  public Map<String, String> keysOf(String address) {
    String path = address.substring(scheme().length() + "://".length()).replaceAll("/+$", "");
    int slash = path.indexOf('/');
    if (path.isEmpty() || slash == 0) {
      throw new IllegalArgumentException(
          "an address is s3://bucket/prefix; found \"%s\"".formatted(address));
    }
    return slash < 0
        ? Map.of(S3Config.BUCKET.name(), path)
        : Map.of(
            S3Config.BUCKET.name(),
            path.substring(0, slash),
            S3Config.PREFIX.name(),
            path.substring(slash + 1));
  }

  @Override
  public Optional<StoreDirectories> blocks(StoreConfig from) {
    Optional<BlockLayout> told =
        from.isSet(CommonKeys.BLOCK_SIZE) ? CommonKeys.layout(from) : Optional.empty();
    long nanos = TimeUnit.MILLISECONDS.toNanos(from.get(CommonKeys.TIMEOUT_MS));
    long capacity = S3Config.capacityBytes(from);
    return S3Config.client(from, Optional.empty())
        .map(
            client ->
                new BucketDirectories(
                    client, from.get(S3Config.PREFIX), nanos, capacity, told.orElse(null)));
  }

  @Override
  protected void doConfigure(StoreConfig values) {
    config = S3Config.from(values).orElse(null);
  }

  @Override
  protected void doOpen(StoreContext context) {
    S3Config told = Objects.requireNonNull(config);
    S3Metrics metrics = new S3Metrics(context.metrics());
    ObjectClient client = new ObjectClient(told.client(), newThreads("timer"), context.nanoClock());
    try {
      requireBucket(client, told);
      boolean bounded = told.capacityBytes() > 0;
      int processors = Runtime.getRuntime().availableProcessors();
      Bucket bucket =
          new Bucket(
              client,
              new ObjectFormat(layout(), told.prefix()),
              new KnownBlocks(told.knownNanos(), context.nanoClock()),
              metrics,
              new RequestWindow(told.concurrency()),
              newWorkers("worker", Math.clamp(processors, 1, MOST_WORKERS)),
              context.nanoClock(),
              new BlockRefresh(told.client().bucket(), bounded ? REFRESH_ONE_IN : 0, REFRESH_AFTER),
              new AtomicBoolean(true));
      context
          .metrics()
          .gauge("s3_shut_endpoints", "Endpoints that are not asked", client::shutEndpoints);
      context
          .metrics()
          .gauge("s3_window_requests", "Moves that may be under way", bucket.window()::width);
      ScheduledExecutorService collector =
          Executors.newSingleThreadScheduledExecutor(newThreads("collector"));
      if (bounded) {
        new BucketCollector(bucket, told.prefix(), told.capacityBytes(), LEASE, timeout().toNanos())
            .start(collector);
      }
      opened =
          new OpenStore(
              bucket,
              new BlockLookup(bucket, timeout().toNanos(), told.searches()),
              new Drafts(
                  bucket,
                  told.draftBytes(),
                  timeout().toNanos(),
                  (id, why) -> dumpFailed(id.high(0), id.low(0), why)),
              collector);
    } catch (RuntimeException | Error e) {
      client.close(timeout());
      throw e;
    }
  }

  /** Tells of a bucket that is not there; one that does not answer now may do so later. */
  private void requireBucket(ObjectClient client, S3Config told) {
    long nanos = Math.min(timeout().toNanos(), 2 * told.client().firstByteNanos());
    CompletableFuture<ObjectReply> answer = client.send(ObjectRequest.head(""), nanos);
    ObjectReply reply = answer.join();
    String where = told.client().bucket() + " at " + told.client().endpoints();
    if (reply.isMissing()) {
      throw new StoreException(
          "S3 finds no bucket " + where + ": create it, or correct s3_bucket or s3_endpoints");
    }
    if (!reply.ok()) {
      LOG.warn(
          "S3 opens though bucket {} cannot be asked for: {}; `ucm doctor` says more",
          where,
          reply.describe());
    }
  }

  private OpenStore opened() {
    return Objects.requireNonNull(opened);
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    return ids.isEmpty() ? new BitSet() : opened().lookup.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    requireOpen();
    return opened().lookup.lookupPrefix(ids);
  }

  @Override
  public BitSet lookupKnown(BlockIds ids) {
    requireOpen();
    return opened().lookup.known(ids);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return opened().lookup.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    Bucket bucket = opened().bucket;
    BitSet gone = new BitSet();
    List<CompletableFuture<ObjectReply>> replies =
        IntStream.range(0, ids.size())
            .mapToObj(i -> bucket.format().key(ids.high(i), ids.low(i)))
            .map(key -> bucket.client().send(ObjectRequest.delete(key), timeout().toNanos()))
            .toList();
    for (int i = 0; i < ids.size(); i++) {
      ObjectReply reply = replies.get(i).join();
      bucket.known().removed(ids.slice(i, i + 1));
      gone.set(i, reply.ok() || reply.isMissing());
    }
    return gone;
  }

  @Override
  protected void doLoad(TransferTask task) {
    Transfer transfer = task.transfer();
    int end;
    for (int from = 0; from < transfer.shardCount(); from = end) {
      // One request asks for a range.
      end = endOfBlock(transfer, from, true);
      new BlockLoad(opened().bucket, task, from, end - from).start();
    }
  }

  @Override
  protected void doDump(TransferTask task) {
    int end;
    for (int from = 0; from < task.transfer().shardCount(); from = end) {
      end = endOfBlock(task.transfer(), from, false);
      dumpRun(opened(), task, from, end);
    }
  }

  private static void dumpRun(OpenStore now, TransferTask task, int from, int end) {
    BlockIds id = task.transfer().ids().slice(from, from + 1);
    if (now.bucket.known().has(id)) {
      now.bucket.metrics().presentBlocks.increment();
      for (int shard = from; shard < end; shard++) {
        if (task.begin(shard)) {
          task.ok(shard);
        }
      }
    } else if (hasAllShards(task.transfer(), from, end)) {
      new BlockDump(now.bucket, task, from, end - from, () -> now.drafts.drop(id)).start();
    } else {
      for (int shard = from; shard < end; shard++) {
        now.drafts.add(task, shard);
      }
    }
  }

  /** The first shard from {@code from} on that is of another block or, when they must, does not follow. */
  private static int endOfBlock(Transfer transfer, int from, boolean mustFollow) {
    BlockIds ids = transfer.ids();
    int end = from + 1;
    while (end < transfer.shardCount()
        && ids.high(end) == ids.high(from)
        && ids.low(end) == ids.low(from)
        && (!mustFollow || transfer.shardIndex(end) == transfer.shardIndex(end - 1) + 1)) {
      end++;
    }
    return end;
  }

  private static boolean hasAllShards(Transfer transfer, int from, int end) {
    BitSet shards = new BitSet();
    for (int i = from; i < end; i++) {
      shards.set(transfer.shardIndex(i));
    }
    int count = transfer.layout().shardCount();
    return end - from == count && shards.cardinality() == count;
  }

  @Override
  protected void doFlush(long lastTask, Duration timeout, Set<BlockIds> pending)
      throws InterruptedException {
    Set<BlockIds> left = new HashSet<>();
    opened().drafts.flush(timeout, left);
    // A block of which some shards came may have been stored whole meanwhile.
    List<BlockIds> ids = List.copyOf(left);
    BitSet whole =
        opened().lookup.durable(BlockIds.ofHex(ids.stream().map(id -> id.hex(0)).toList()));
    for (int i = 0; i < ids.size(); i++) {
      if (whole.get(i)) {
        opened().drafts.drop(ids.get(i));
      } else {
        pending.add(ids.get(i));
      }
    }
  }

  @Override
  protected void countFailedDump() {
    OpenStore now = opened;
    if (now != null) {
      now.bucket.metrics().failedBlocks.increment();
    }
  }

  @Override
  protected void doClose() {
    OpenStore now = opened();
    now.collector.shutdownNow();
    try {
      Set<BlockIds> left = new HashSet<>();
      // Half of what is left is for requests to be aborted.
      now.drafts.flush(timeToClose().dividedBy(2), left);
      if (!left.isEmpty()) {
        LOG.warn("S3 closes and drops {} blocks that lack shards or were not stored", left.size());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    long least = TimeUnit.SECONDS.toNanos(1);
    now.bucket.client().close(Duration.ofNanos(Math.max(least, timeToClose().toNanos())));
    now.drafts.close();
  }
}

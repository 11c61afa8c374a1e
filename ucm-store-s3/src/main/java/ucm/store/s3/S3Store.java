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
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
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
import ucm.store.s3.block.BucketCollector;
import ucm.store.s3.block.Drafts;
import ucm.store.s3.block.KnownBlocks;
import ucm.store.s3.block.Moves;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.block.S3Metrics;
import ucm.store.s3.client.CrtObjectClient;
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

  private record OpenBucket(
      ObjectClient client,
      ObjectFormat format,
      KnownBlocks known,
      S3Metrics metrics,
      BlockLookup lookup,
      Moves moves,
      Executor workers,
      Drafts drafts,
      ScheduledExecutorService background) {}

  private @Nullable S3Config config;
  private volatile @Nullable OpenBucket bucket;

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
    CrtObjectClient client =
        new CrtObjectClient(told.client(), newThreads("timer"), context.nanoClock());
    try {
      requireBucket(client, told);
      ObjectFormat format = new ObjectFormat(layout(), told.prefix());
      KnownBlocks known = new KnownBlocks(told.knownNanos(), context.nanoClock());
      BlockLookup lookup =
          new BlockLookup(client, format, known, metrics, timeout().toNanos(), told.searches());
      int processors = Runtime.getRuntime().availableProcessors();
      Executor workers = newWorkers("worker", Math.clamp(processors, 1, MOST_WORKERS));
      Moves moves =
          Moves.of(
              client,
              format,
              known,
              metrics,
              told.concurrency(),
              workers,
              context.nanoClock(),
              told.capacityBytes() == 0
                  ? BlockRefresh.NONE
                  : new BlockRefresh(told.client().bucket(), REFRESH_ONE_IN, REFRESH_AFTER));
      Drafts drafts =
          new Drafts(
              moves,
              told.draftBytes(),
              timeout().toNanos(),
              (id, why) -> dumpFailed(id.high(0), id.low(0), why));
      context
          .metrics()
          .gauge("s3_shut_endpoints", "Endpoints that are not asked", client::shutEndpoints);
      context.metrics().gauge("s3_window_requests", "Moves that may be under way", moves::width);
      ScheduledExecutorService background =
          Executors.newSingleThreadScheduledExecutor(newThreads("collector"));
      if (told.capacityBytes() > 0) {
        new BucketCollector(
                client,
                told.prefix(),
                told.capacityBytes(),
                LEASE,
                timeout().toNanos(),
                () -> known.storedBlocks() * format.objectSize(),
                id -> {
                  known.removed(id);
                  metrics.collectedBlocks.increment();
                },
                context.nanoClock())
            .start(background);
      }
      bucket =
          new OpenBucket(
              client, format, known, metrics, lookup, moves, workers, drafts, background);
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

  private OpenBucket bucket() {
    return Objects.requireNonNull(bucket);
  }

  @Override
  protected BitSet doLookup(BlockIds ids) {
    return ids.isEmpty() ? new BitSet() : bucket().lookup.lookup(ids);
  }

  @Override
  public int lookupPrefix(BlockIds ids) {
    requireOpen();
    return bucket().lookup.lookupPrefix(ids);
  }

  @Override
  public BitSet lookupKnown(BlockIds ids) {
    requireOpen();
    return bucket().lookup.known(ids);
  }

  @Override
  public BitSet durable(BlockIds ids) {
    requireOpen();
    return bucket().lookup.durable(ids);
  }

  @Override
  public boolean canRemove() {
    return true;
  }

  @Override
  public BitSet remove(BlockIds ids) {
    requireOpen();
    OpenBucket now = bucket();
    BitSet gone = new BitSet();
    List<CompletableFuture<ObjectReply>> replies =
        IntStream.range(0, ids.size())
            .mapToObj(i -> now.format.key(ids.high(i), ids.low(i)))
            .map(key -> now.client.send(ObjectRequest.delete(key), timeout().toNanos()))
            .toList();
    for (int i = 0; i < ids.size(); i++) {
      ObjectReply reply = replies.get(i).join();
      now.known.removed(ids.slice(i, i + 1));
      gone.set(i, reply.ok() || reply.isMissing());
    }
    return gone;
  }

  @Override
  protected void doLoad(TransferTask task) {
    OpenBucket now = bucket();
    Transfer transfer = task.transfer();
    int from = 0;
    while (from < transfer.shardCount()) {
      // One request asks for a range.
      int end = endOfBlock(transfer, from, true);
      new BlockLoad(now.moves, task, from, end - from).start();
      from = end;
    }
  }

  @Override
  protected void doDump(TransferTask task) {
    OpenBucket now = bucket();
    Transfer transfer = task.transfer();
    int from = 0;
    while (from < transfer.shardCount()) {
      int end = endOfBlock(transfer, from, false);
      dumpRun(now, task, from, end);
      from = end;
    }
  }

  private void dumpRun(OpenBucket now, TransferTask task, int from, int end) {
    BlockIds id = task.transfer().ids().slice(from, from + 1);
    if (now.known.has(id)) {
      now.metrics.presentBlocks.increment();
      for (int shard = from; shard < end; shard++) {
        if (task.begin(shard)) {
          task.ok(shard);
        }
      }
    } else if (hasAllShards(task.transfer(), from, end)) {
      new BlockDump(now.moves, task, from, end - from, () -> now.drafts.drop(id)).start();
    } else {
      for (int shard = from; shard < end; shard++) {
        int one = shard;
        now.workers.execute(() -> now.drafts.add(task, one));
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
    OpenBucket now = bucket();
    Set<BlockIds> left = new HashSet<>();
    now.drafts.flush(timeout, left);
    // A block of which some shards came may have been stored whole meanwhile.
    List<BlockIds> ids = List.copyOf(left);
    BitSet whole = now.lookup.durable(BlockIds.ofHex(ids.stream().map(id -> id.hex(0)).toList()));
    for (int i = 0; i < ids.size(); i++) {
      if (whole.get(i)) {
        now.drafts.drop(ids.get(i));
      } else {
        pending.add(ids.get(i));
      }
    }
  }

  @Override
  protected void countFailedDump() {
    OpenBucket now = bucket;
    if (now != null) {
      now.metrics.failedBlocks.increment();
    }
  }

  @Override
  protected void doClose() {
    OpenBucket now = bucket();
    now.background.shutdownNow();
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
    now.client.close(Duration.ofNanos(Math.max(least, timeToClose().toNanos())));
    now.drafts.close();
  }
}

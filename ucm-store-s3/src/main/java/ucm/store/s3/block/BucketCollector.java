package ucm.store.s3.block;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.UUID;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.store.s3.client.ObjectList;
import ucm.store.s3.client.ObjectList.Listed;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.store.s3.client.ObjectRequest.Source;

/**
 * Removes the oldest blocks when those below a prefix, of whatever layout, take more than a capacity. Of the
 * processes that share them one does it, the one that has written the lease, an object that is stored when there
 * is none, and replaced by the one whose last version is still there; a lease that is not renewed is taken
 * over. Where a server has no conditions, two may do it: they remove the same blocks.
 */
public final class BucketCollector {

  /** Where its lease is below the prefix. */
  public static final String LEASE = "/collector";

  private static final Logger LOG = LoggerFactory.getLogger(BucketCollector.class);
  private static final long EVERY_NANOS = TimeUnit.MINUTES.toNanos(5);
  private static final long TICK_SECONDS = 1;
  // What one removes more than needed, so that the bucket is not listed for each block.
  private static final int SPARE = 20;
  private static final int NOTICED = 32;
  // Oldest ones that are kept in mind while the bucket is listed.
  private static final int MOST = 200_000;

  private final Bucket bucket;
  private final ObjectList list;
  private final String prefix;
  private final long capacity;
  private final Duration lease;
  private final long nanos;
  private final String self = UUID.randomUUID().toString();
  // Used by one thread.
  private String etag = "";
  private long renewals;
  private long renewedAt;
  private long collectedAt;
  private long writtenThen;

  /**
   * A collector that does nothing by itself.
   *
   * @param lease after how long without a renewal another may take over
   * @param nanos the time of a request
   */
  public BucketCollector(Bucket bucket, String prefix, long capacity, Duration lease, long nanos) {
    this.bucket = bucket;
    this.list = new ObjectList(bucket.client(), prefix, nanos);
    this.prefix = prefix;
    this.capacity = capacity;
    this.lease = lease;
    this.nanos = nanos;
    this.collectedAt = bucket.clock().getAsLong() - EVERY_NANOS;
  }

  /** Collects every 5 minutes, and when this process has stored a 32nd of the capacity. */
  public void start(ScheduledExecutorService timer) {
    var _ = timer.scheduleWithFixedDelay(this::tick, TICK_SECONDS, TICK_SECONDS, TimeUnit.SECONDS);
  }

  private void tick() {
    long now = bucket.clock().getAsLong();
    long more = bucket.known().storedBlocks() * bucket.format().objectSize() - writtenThen;
    if (now - collectedAt < EVERY_NANOS && more <= capacity / NOTICED) {
      return;
    }
    try {
      collect();
    } catch (RuntimeException e) {
      LOG.warn("S3: old blocks were not removed, it is tried again in a while: {}", e.toString());
    }
    collectedAt = now;
    writtenThen += more;
  }

  /**
   * Removes what is too much, when this process has the lease.
   *
   * @return how many blocks
   * @throws StoreException when the bucket does not do what it is asked
   */
  public int collect() {
    if (!renew()) {
      return 0;
    }
    Comparator<Listed> byAge = Comparator.comparing(Listed::modified).thenComparing(Listed::key);
    PriorityQueue<Listed> oldest = new PriorityQueue<>(byAge.reversed());
    AtomicLong total = new AtomicLong();
    boolean listed =
        list.each(
            one -> {
              if (ObjectFormat.BLOCK.matcher(one.key().substring(prefix.length() + 1)).matches()) {
                var _ = total.addAndGet(one.size());
                oldest.add(one);
              }
              if (oldest.size() > MOST) {
                oldest.remove();
              }
              return stillMine();
            });
    boolean tooMuch = listed && total.get() > capacity;
    return tooMuch ? remove(oldest.stream().sorted(byAge), total.get() - target(capacity)) : 0;
  }

  /** What stays when more than a capacity was found. */
  public static long target(long capacity) {
    return capacity - capacity / SPARE;
  }

  /** Removes blocks until so many bytes are gone. */
  private int remove(Stream<Listed> order, long bytes) {
    AtomicLong left = new AtomicLong(bytes);
    List<String> keys =
        order.takeWhile(one -> left.getAndAdd(-one.size()) > 0).map(Listed::key).toList();
    int count = 0;
    while (count < keys.size() && stillMine()) {
      List<String> page = keys.subList(count, Math.min(keys.size(), count + ObjectList.PAGE));
      list.remove(page);
      for (String key : page) {
        bucket.known().removed(BlockIds.ofHex(key.substring(key.lastIndexOf('/') + 1)));
        bucket.metrics().collectedBlocks.increment();
      }
      count += page.size();
    }
    LOG.info("S3: {} of the oldest blocks below {} were removed", count, prefix);
    return count;
  }

  private boolean stillMine() {
    return bucket.clock().getAsLong() - renewedAt < lease.toNanos() / 4 || renew();
  }

  /** Whether this process may collect: it has written the lease last, or the one who did is gone. */
  private boolean renew() {
    ObjectReply reply = write(etag.isEmpty() ? "If-None-Match" : "If-Match", etag);
    if (reply.isPresent() || reply.isMissing()) {
      ObjectReply held = bucket.client().send(ObjectRequest.head(key()), nanos).join();
      if (held.ok() && held.age().compareTo(lease) < 0) {
        etag = "";
        return false;
      }
      reply = write(held.ok() ? "If-Match" : "If-None-Match", held.header("etag"));
    }
    etag = reply.ok() ? reply.header("etag") : "";
    renewedAt = bucket.clock().getAsLong();
    if (!reply.ok() && !reply.isPresent()) {
      throw new StoreException("S3 did not store the lease " + key() + ": " + reply.describe());
    }
    return reply.ok();
  }

  private String key() {
    return prefix + LEASE;
  }

  private ObjectReply write(String condition, String version) {
    ByteBuffer body = UTF_8.encode(self + " " + renewals++);
    // Ceph compares with its tag as it is, which has no quotes; others know both.
    String tag = version.replace("\"", "");
    Map<String, String> headers = Map.of(condition, tag.isEmpty() ? "*" : tag);
    return bucket
        .client()
        .send(ObjectRequest.put(key(), headers, Source.of(body), body.limit()), nanos)
        .join();
  }
}

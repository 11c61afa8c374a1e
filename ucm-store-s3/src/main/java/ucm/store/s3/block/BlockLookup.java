package ucm.store.s3.block;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;

/**
 * Asks the bucket which blocks it has, some at once. What does not answer in time is not there.
 *
 * <p>How far a prompt reaches is searched for: a block is stored after those before it, so one that is there
 * says that they most likely are, too. Each round asks for so many blocks at equal distances, and the next one
 * looks between the last that was there and the first that was not: 1,000 blocks need 3 rounds and 37
 * questions. A block that has gone from the middle is found missing when it is loaded. Thread-safe.
 */
public final class BlockLookup {

  /** Questions that are under way at the most. */
  private static final int AT_ONCE = 16;

  private final Bucket bucket;
  private final KnownBlocks known;
  private final S3Metrics metrics;
  private final long timeoutNanos;
  private final boolean searches;
  private final Semaphore slots = new Semaphore(AT_ONCE);

  /** Look-ups that take no longer than a time; {@code searches} for those of prompts. */
  public BlockLookup(Bucket bucket, long timeoutNanos, boolean searches) {
    this.bucket = bucket;
    this.known = bucket.known();
    this.metrics = bucket.metrics();
    this.timeoutNanos = timeoutNanos;
    this.searches = searches;
  }

  private static BlockIds id(BlockIds ids, int i) {
    return ids.slice(i, i + 1);
  }

  /** Which blocks are known to be there, without a question. */
  public BitSet known(BlockIds ids) {
    BitSet found = new BitSet();
    for (int i = 0; i < ids.size(); i++) {
      found.set(i, known.has(id(ids, i)));
    }
    return found;
  }

  /** See {@link ucm.api.Store#lookup}. */
  public BitSet lookup(BlockIds ids) {
    BitSet found = known(ids);
    metrics.lookupKnownBlocks.add(found.cardinality());
    BitSet unknown = new BitSet();
    unknown.set(0, ids.size());
    unknown.andNot(found);
    found.or(ask(ids, unknown, end()));
    counted(ids.size(), found.cardinality());
    return found;
  }

  /** Which blocks the bucket says that it has, whatever is known. */
  public BitSet durable(BlockIds ids) {
    BitSet all = new BitSet();
    all.set(0, ids.size());
    return ask(ids, all, end());
  }

  /** See {@link ucm.api.Store#lookupPrefix}. */
  public int lookupPrefix(BlockIds ids) {
    int run = searches ? search(ids, end()) : lookup(ids).nextClearBit(0);
    if (searches) {
      counted(ids.size(), run);
    }
    return run - 1;
  }

  private int search(BlockIds ids, long end) {
    BitSet here = known(ids);
    // All before low are there, high is not.
    int low = here.nextClearBit(0);
    int high = ids.size();
    metrics.lookupKnownBlocks.add(low);
    while (low < high) {
      BitSet probes = new BitSet();
      int width = high - low;
      if (width <= AT_ONCE) {
        probes.set(low, high);
      } else {
        // The first, as most prompts that are not there at all end with it, and the last.
        for (int i = 0; i < AT_ONCE; i++) {
          probes.set(low + (int) ((long) i * (width - 1) / (AT_ONCE - 1)));
        }
      }
      BitSet asked = (BitSet) probes.clone();
      asked.andNot(here);
      BitSet there = ask(ids, asked, end);
      there.or(here);
      int before = low;
      for (int probe = probes.nextSetBit(0); probe >= 0; probe = probes.nextSetBit(probe + 1)) {
        if (!there.get(probe)) {
          high = probe;
          break;
        }
        before = probe + 1;
      }
      low = before;
      here.or(there);
    }
    return low;
  }

  private void counted(int asked, int found) {
    metrics.lookupBlocks.add(asked);
    metrics.lookupHitBlocks.add(found);
  }

  private long end() {
    return System.nanoTime() + timeoutNanos;
  }

  private BitSet ask(BlockIds ids, BitSet which, long end) {
    Map<Integer, CompletableFuture<ObjectReply>> asked = new HashMap<>();
    BitSet there = new BitSet();
    try {
      for (int i = which.nextSetBit(0); i >= 0; i = which.nextSetBit(i + 1)) {
        if (!known.isDamaged(id(ids, i))) {
          if (!slots.tryAcquire(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
            break;
          }
          asked.put(i, askFor(ids, i, end));
        }
      }
      for (Map.Entry<Integer, CompletableFuture<ObjectReply>> one : asked.entrySet()) {
        int i = one.getKey();
        there.set(i, isWhole(one.getValue().get(), id(ids, i)));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException e) {
      throw new IllegalStateException("a request ended by an exception", e);
    }
    return there;
  }

  /** Asks for one block, and gives the slot back when it is answered. */
  private CompletableFuture<ObjectReply> askFor(BlockIds ids, int i, long end) {
    metrics.headRequests.increment();
    return bucket
        .client()
        .send(
            ObjectRequest.head(bucket.format().key(ids.high(i), ids.low(i))),
            end - System.nanoTime())
        .whenComplete((_, _) -> slots.release());
  }

  private boolean isWhole(ObjectReply reply, BlockIds id) {
    if (reply.isMissing()) {
      known.forget(id);
    } else if (!reply.ok()) {
      metrics.failedRequests.increment();
    }
    return bucket.format().isWhole(reply, id.high(0), id.low(0));
  }
}

package ucm.store.s3.block;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import ucm.api.BlockIds;
import ucm.store.s3.client.ObjectClient;
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

  private final ObjectClient client;
  private final ObjectFormat format;
  private final KnownBlocks known;
  private final S3Metrics metrics;
  private final long timeoutNanos;
  private final boolean searches;
  private final Semaphore slots = new Semaphore(AT_ONCE);

  /** Look-ups that take no longer than a time; {@code searches} for those of prompts. */
  public BlockLookup(
      ObjectClient client,
      ObjectFormat format,
      KnownBlocks known,
      S3Metrics metrics,
      long timeoutNanos,
      boolean searches) {
    this.client = client;
    this.format = format;
    this.known = known;
    this.metrics = metrics;
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
    Map<BlockIds, CompletableFuture<Boolean>> asked = new HashMap<>();
    List<Integer> order = new ArrayList<>();
    BitSet there = new BitSet();
    try {
      for (int i = which.nextSetBit(0); i >= 0; i = which.nextSetBit(i + 1)) {
        BlockIds id = id(ids, i);
        if (!asked.containsKey(id)) {
          if (!slots.tryAcquire(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
            break;
          }
          asked.put(id, askFor(id, end));
        }
        order.add(i);
      }
      for (int i : order) {
        there.set(i, isThere(asked, id(ids, i)));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return there;
  }

  private static boolean isThere(Map<BlockIds, CompletableFuture<Boolean>> asked, BlockIds id)
      throws InterruptedException {
    try {
      CompletableFuture<Boolean> answer = asked.get(id);
      return answer != null && answer.get();
    } catch (ExecutionException e) {
      return false;
    }
  }

  /** Asks for one block, and gives the slot back when it is answered. */
  private CompletableFuture<Boolean> askFor(BlockIds id, long end) {
    if (known.isDamaged(id)) {
      slots.release();
      return CompletableFuture.completedFuture(false);
    }
    metrics.headRequests.increment();
    String key = format.key(id.high(0), id.low(0));
    return client
        .send(ObjectRequest.head(key), end - System.nanoTime())
        .whenComplete((_, _) -> slots.release())
        .thenApply(reply -> isWhole(reply, id));
  }

  private boolean isWhole(ObjectReply reply, BlockIds id) {
    if (!reply.ok() && !reply.isMissing()) {
      metrics.failedRequests.increment();
    }
    boolean whole = format.isWhole(reply, id.high(0), id.low(0));
    if (!whole && reply.isMissing()) {
      known.forget(id);
    }
    return whole;
  }
}

package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Dumps over a stage that knows by itself what it has: it is asked only where that saves moving bytes. */
@Timeout(120)
final class KnownInNextTest extends OverHeldNext {
  private final BlockIds ids = BlockBytes.ids(1, 3);

  private void requireWritten(BlockIds expected) throws InterruptedException {
    HeldNext.Held write = next.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(2 * expected.size());
    for (int i = 0; i < write.transfer.shardCount(); i++) {
      assertThat(write.transfer.ids().slice(i, i + 1)).isEqualTo(expected.slice(i / 2, i / 2 + 1));
    }
    write.takeAll();
  }

  @Test
  void movesWhatItDoesNotKnowWithoutAskingAndNothingThatItKnows() throws InterruptedException {
    TestCache cache = cache(8);
    next.knows = true;
    next.has(ids.slice(1, 3));
    cache.dump(ids);
    requireWritten(ids.slice(0, 1));
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(next.lookups).isEmpty();
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(2 * 4096);
    assertThat(cache.pool().inUse()).isEqualTo(2);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void askedForABlockThatIsHereAndThatItDoesNotKnow() throws InterruptedException {
    TestCache cache = cache(8);
    next.knows = true;
    cache.dump(ids.slice(0, 1));
    requireWritten(ids.slice(0, 1));
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();

    // It has the block, which it finds out when it is asked.
    next.onLookup = number -> next.has(ids.slice(0, 1));
    cache.dump(ids.slice(0, 1));
    assertThat(next.lookups).containsExactly(ids.slice(0, 1));
    assertThat(next.dumps).isEmpty();
    assertThat(cache.metrics.count("cache_dump_bytes")).isEqualTo(2 * 4096);
  }

  @Test
  void blockThatItLostComesBackWithAllItsShards() throws InterruptedException {
    TestCache cache = cache(8);
    BlockIds lost = ids.slice(0, 1);
    TransferMemory shard = TransferMemory.ofShards(LAYOUT, Placement.PACKED, lost, 0, 1);
    Task load = cache.store.load(shard.transfer());
    next.nextLoad().serveAll();
    assertThat(load.await(PATIENCE).ok()).isTrue();
    next.knows = true;
    cache.dump(ids);
    requireWritten(ids);
    assertThat(next.lookups).isEmpty();
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isEqualTo(6);
  }

  @Test
  void oneThatThrowsIsAsked() throws InterruptedException {
    TestCache cache = cache(8);
    next.has(ids.slice(1, 3));
    next.onKnown =
        () -> {
          throw new StoreException("gone");
        };
    cache.dump(ids);
    requireWritten(ids.slice(0, 1));
    assertThat(next.lookups).containsExactly(ids);
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
  }
}

package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.ShardOutcome;
import ucm.api.StoreException;
import ucm.api.Task;
import ucm.store.cache.config.PoolMemory;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Pools that divide the memory of one: whatever their sizes, together they take no more. */
@Timeout(120)
final class DividedPoolTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final long PAGE = 4096;
  private static final long BUDGET = 11 * 66 * PAGE;

  private final List<TestCache> open = new ArrayList<>();

  @AfterEach
  void closesAll() {
    open.forEach(TestCache::close);
  }

  @Test
  void elevenSizesTakeTheMemoryOfOne() throws InterruptedException {
    for (int pages = 1; pages <= 11; pages++) {
      TestCache one = store(layout(pages), "host", true);
      fill(one, layout(pages));
      assertThat(bytesInUse()).isBetween(BUDGET * 9 / 10, BUDGET);
      assertThat(bytesWritten()).isLessThanOrEqualTo(BUDGET);
    }
    assertThat(open.stream().map(cache -> cache.pool().limit())).containsOnly(11);
    // They still do their work.
    for (int pages = 1; pages <= 11; pages++) {
      fill(open.get(pages - 1), layout(pages));
    }
    assertThat(bytesWritten()).isBetween(BUDGET * 9 / 10, BUDGET);
  }

  @Test
  void whoStaysHasAllThereIsAgain() throws InterruptedException {
    TestCache first = store(layout(1), "host", true);
    int alone = first.pool().limit();
    TestCache second = store(layout(2), "host", true);
    assertThat(first.pool().limit()).isEqualTo(alone / 3).isEqualTo(second.pool().limit());
    open.remove(second);
    second.close();
    assertThat(first.pool().limit()).isEqualTo(alone);
    fill(first, layout(1));
    assertThat(first.pool().inUse()).isEqualTo(alone);
  }

  /** An engine for whose pool there is no memory asks again and again. */
  @Test
  void nothingIsLostForAPoolThatCannotBeMade() throws InterruptedException {
    TestCache first = store(layout(1), "host", true);
    fill(first, layout(1));
    int before = first.pool().inUse();
    long capacity = before * PAGE;
    List<Long> asked = new ArrayList<>();
    assertThatThrownBy(
            () ->
                PoolBudget.OF_PROCESS.join(
                    new PoolBudget.Share(2 * capacity, PAGE, 1),
                    bytes -> {
                      asked.add(bytes);
                      throw new StoreException("no room");
                    },
                    _ -> fail("it is not made")))
        .hasMessage("no room");
    // Each of the two had as many blocks as the first one has alone.
    assertThat(asked).containsExactly(capacity);
    assertThat(first.pool().inUse()).isEqualTo(before).isEqualTo(first.pool().limit());
    assertThatThrownBy(
            () ->
                PoolBudget.OF_PROCESS.join(
                    new PoolBudget.Share(capacity, PAGE, 1),
                    bytes -> {
                      asked.add(bytes);
                      throw new StoreException("no room");
                    },
                    _ -> fail("it is not made")))
        .hasMessage("no room");
    // The first one would give as many as that one takes.
    assertThat(asked).containsExactly(capacity, 0L);
    assertThat(first.pool().inUse()).isEqualTo(before);
  }

  @Test
  void slotsThatAreInUseGoWhenTheyAreNot() throws InterruptedException {
    HeldNext next = new HeldNext();
    TestCache first = store(layout(1), next, "host", true);
    int alone = first.pool().limit();
    BlockIds ids = BlockBytes.ids(1, alone);
    Task reading = first.store.load(memory(layout(1), ids).transfer());
    HeldNext.Held held = next.nextLoad();
    store(layout(1), "host", true);
    int share = first.pool().limit();
    assertThat(share).isEqualTo(alone / 2);
    assertThat(first.pool().inUse()).isGreaterThan(share);
    held.endAll(ShardOutcome.MISSING, null);
    reading.await(PATIENCE);
    first.awaitUnreferenced();
    assertThat(first.pool().inUse()).isLessThanOrEqualTo(share);
  }

  @Test
  void othersHaveTheirOwn() throws InterruptedException {
    for (int pages = 1; pages <= 3; pages++) {
      fill(store(layout(pages), pages == 1 ? "auto" : "host", pages == 1), layout(pages));
    }
    assertThat(bytesInUse()).isGreaterThan(2 * BUDGET);
  }

  private static BlockLayout layout(int pages) {
    return BlockLayout.uniform(pages * PAGE, pages * PAGE, pages * PAGE);
  }

  private TestCache store(BlockLayout layout, String device, boolean divided) {
    return store(layout, null, device, divided);
  }

  private TestCache store(
      BlockLayout layout, @Nullable HeldNext next, String device, boolean divided) {
    TestCache made =
        new TestCache(
            layout,
            next,
            1,
            Map.of(
                "cache_buffer_capacity_gb",
                (double) BUDGET / (1L << 30),
                "cache_device",
                device,
                "cache_buffer_divided",
                divided));
    open.add(made);
    return made;
  }

  private static TransferMemory memory(BlockLayout layout, BlockIds ids) {
    return TransferMemory.ofBlocks(layout, Placement.PACKED, ids);
  }

  /** Brings more blocks than there are slots, all bytes of them other than zero. */
  private static void fill(TestCache cache, BlockLayout layout) throws InterruptedException {
    int count = cache.pool().limit() + 3;
    for (int i = 0; i < count; i++) {
      TransferMemory one = memory(layout, BlockBytes.ids(100 + i, 1));
      one.fill();
      cache.store.dump(one.transfer()).await(PATIENCE).requireOk();
      cache.awaitUnreferenced();
    }
  }

  private long bytesInUse() {
    return open.stream()
        .mapToLong(cache -> cache.pool().limit() * cache.opened().memory.stride())
        .sum();
  }

  /** Bytes of slots that hold something other than zeros: what was given back reads as these. */
  private long bytesWritten() {
    long bytes = 0;
    for (TestCache cache : open) {
      PoolMemory memory = cache.opened().memory;
      MemorySegment zeros = MemorySegment.ofArray(new byte[(int) memory.stride()]);
      for (int slot = 0; slot < memory.slots(); slot++) {
        MemorySegment own = memory.region().segment().asSlice(memory.offset(slot), memory.stride());
        bytes += own.mismatch(zeros) == -1 ? 0 : memory.stride();
      }
    }
    return bytes;
  }
}

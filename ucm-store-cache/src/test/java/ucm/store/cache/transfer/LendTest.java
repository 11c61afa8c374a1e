package ucm.store.cache.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.BlockLender.Fetch;
import ucm.api.BlockLender.Lending;
import ucm.api.QueueFullException;
import ucm.api.ShardOutcome;
import ucm.api.StoreClosedException;
import ucm.api.Task;
import ucm.store.cache.fixture.HeldNext.Held;
import ucm.store.cache.fixture.OverHeldNext;
import ucm.store.cache.fixture.TestCache;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Blocks that others read where they are keep their bytes until they are given back. */
@Timeout(120)
final class LendTest extends OverHeldNext {

  private static final int SHARDS = 3;
  private static final long SHARD_BYTES = 4096;
  private static final BlockLayout THREE_SHARDS =
      BlockLayout.uniform(SHARD_BYTES, SHARD_BYTES, SHARDS * SHARD_BYTES);
  private static final BlockLayout ONE_SHARD =
      BlockLayout.uniform(SHARD_BYTES, SHARD_BYTES, SHARD_BYTES);
  private static final int BLOCKS = 8;

  private final Map<String, Object> settings =
      new HashMap<>(Map.of("cache_device", "host", "cache_buffer_lent", true));

  @Test
  void anotherMappingHasTheBytes() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, 4);
    int[] lent = cache.store.lend(ids);
    assertThat(lent).hasSize(4);
    check(mapped(cache), ids, lent);
    // Of another block they are not.
    assertThatThrownBy(() -> check(mapped(cache), BlockBytes.ids(99, 4), lent))
        .isInstanceOf(AssertionError.class);
    cache.store.giveBack(lent);
    assertThat(cache.pool().referenced()).isZero();
    assertThat(cache.metrics.count("cache_hit_shards")).isEqualTo(4 * SHARDS);
  }

  @Test
  void whatIsLentIsNotEvictedAndWhatIsGivenBackIs() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, 4);
    int[] lent = cache.store.lend(ids);
    MemorySegment memory = mapped(cache);
    for (int i = 0; i < 3 * BLOCKS; i++) {
      dump(cache, 100 + i, 1);
    }
    check(memory, ids, lent);
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(4);
    cache.store.giveBack(lent);
    for (int i = 0; i < BLOCKS; i++) {
      dump(cache, 200 + i, 1);
    }
    assertThat(cache.store.lookup(ids).isEmpty()).isTrue();
    assertThatThrownBy(() -> check(memory, ids, lent)).isInstanceOf(AssertionError.class);
  }

  @Test
  void halfOfThePoolIsLeftToOthers() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, BLOCKS);
    int[] lent = cache.store.lend(ids);
    assertThat(lent).hasSize(BLOCKS / 2);
    assertThat(cache.store.lend(ids)).isEmpty();
    cache.store.giveBack(lent);
    assertThat(cache.store.lend(ids)).hasSize(BLOCKS / 2);
  }

  @Test
  void onlyTheFirstBlocksThatAreThereAreLent() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, 3);
    cache.pool().drop(ids.high(1), ids.low(1));
    assertThat(cache.store.lend(ids)).hasSize(1);
    assertThat(cache.store.lend(BlockBytes.ids(50, 2))).isEmpty();
  }

  @Test
  void blocksThatAreDroppedStayForThoseWhoReadThem() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, 4);
    int[] lent = cache.store.lend(ids);
    cache.store.clear();
    dump(cache, 2, 4);
    check(mapped(cache), ids, lent);
    assertThat(cache.store.lend(ids)).isEmpty();
    cache.store.giveBack(lent);
    assertThat(cache.pool().inUse()).isEqualTo(4 * SHARDS);
  }

  @Test
  void aMappingOutlivesTheStore() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = dump(cache, 1, 2);
    int[] lent = cache.store.lend(ids);
    MemorySegment memory = mapped(cache);
    cache.close();
    check(memory, ids, lent);
    cache.store.giveBack(lent);
    assertThatThrownBy(() -> cache.store.lend(ids)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void shardsThatLieApartAreNotLent() throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS);
    BlockIds ids = BlockBytes.ids(1, 2);
    // Layer by layer, as an engine does that computes between them.
    for (int shard = 0; shard < SHARDS; shard++) {
      for (int block = 0; block < 2; block++) {
        TransferMemory one =
            TransferMemory.ofShards(THREE_SHARDS, Placement.PACKED, ids, block, shard).fill();
        cache.store.dump(one.transfer()).await(PATIENCE).requireOk();
      }
    }
    assertThat(cache.store.lookup(ids).cardinality()).isEqualTo(2);
    assertThat(cache.store.lend(ids)).isEmpty();
  }

  /** A pool that is no multiple of a block would be cut across blocks from its first eviction on. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void blocksLieInOnePieceHoweverManyHaveBeenEvicted(int more) throws Exception {
    TestCache cache = store(THREE_SHARDS, BLOCKS * SHARDS + more);
    for (int i = 0; i < 4 * BLOCKS; i++) {
      assertThat(cache.store.lookup(dump(cache, i, 1)).cardinality()).isEqualTo(1);
      int[] lent = cache.store.lend(BlockBytes.ids(i, 1));
      assertThat(lent).as("block %s", i).hasSize(1);
      cache.store.giveBack(lent);
    }
  }

  @Test
  void blocksLieInOnePieceHoweverManyAreDumpedAtOnce() throws Exception {
    int shards = 64;
    BlockLayout layout = BlockLayout.uniform(SHARD_BYTES, SHARD_BYTES, shards * SHARD_BYTES);
    TestCache cache = store(layout, 256 * shards);
    try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
      List<Future<?>> dumps = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        int seed = i;
        dumps.add(threads.submit(() -> dump(cache, seed, 2)));
      }
      for (Future<?> dump : dumps) {
        dump.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
      }
    }
    for (int i = 0; i < 64; i++) {
      assertThat(cache.store.lend(BlockBytes.ids(i, 2))).as("seed %s", i).hasSize(2);
    }
  }

  @Test
  void aPoolThatOthersCannotReadIsNotLent() {
    settings.put("cache_buffer_lent", false);
    assertThat(store(THREE_SHARDS, SHARDS).store.lending()).isNull();
    settings.put("cache_buffer_lent", true);
    assertThat(store(THREE_SHARDS, SHARDS).store.lending()).isNotNull();
    BlockLayout apart = BlockLayout.uniform(100, 100, 200);
    assertThat(store(apart, SHARDS).store.lending()).isNull();
  }

  @Test
  void whatNoDeviceHasPinnedIsToldApart() {
    settings.put("cache_device", "auto");
    Lending lending = store(THREE_SHARDS, SHARDS).store.lending();
    assertThat(Objects.requireNonNull(lending).isPinned()).isFalse();
  }

  /** Whose pool becomes smaller gives back what it does not lend. */
  @Test
  void aPoolThatDividesItsMemoryKeepsWhatItLends() throws Exception {
    settings.put("cache_buffer_divided", true);
    TestCache cache = store(ONE_SHARD, BLOCKS);
    BlockIds ids = dump(cache, 1, BLOCKS);
    int[] lent = cache.store.lend(ids);
    assertThat(lent).hasSize(BLOCKS / 2);
    MemorySegment memory = mapped(cache);
    store(ONE_SHARD, BLOCKS);
    assertThat(cache.pool().limit()).isEqualTo(BLOCKS / 2);
    for (int i = 0; i < lent.length; i++) {
      MemorySegment bytes = memory.asSlice(lent[i] * SHARD_BYTES, SHARD_BYTES);
      BlockBytes.check(bytes, ids.high(i), ids.low(i), 0, 0);
    }
    MemorySegment zeros = MemorySegment.ofArray(new byte[(int) SHARD_BYTES]);
    long free =
        IntStream.range(0, BLOCKS)
            .mapToObj(slot -> memory.asSlice(slot * SHARD_BYTES, SHARD_BYTES))
            .filter(slot -> slot.mismatch(zeros) == -1)
            .count();
    // Of its half two are lent, and two more.
    assertThat(free).isEqualTo(BLOCKS / 2 - 2);
    cache.store.giveBack(lent);
    assertThat(cache.pool().referenced()).isZero();
    assertThat(cache.pool().inUse()).isEqualTo(BLOCKS / 2);
  }

  /** As one may that an engine reads which was stopped. */
  @Test
  void aPoolThatBecomesSmallerThanWhatItLendsHasRoomForOthers() throws Exception {
    settings.put("cache_buffer_divided", true);
    TestCache cache = store(ONE_SHARD, BLOCKS);
    int[] lent = cache.store.lend(dump(cache, 1, BLOCKS));
    store(ONE_SHARD, BLOCKS);
    store(ONE_SHARD, BLOCKS);
    assertThat(cache.pool().limit()).isLessThan(lent.length);
    BlockIds others = dump(cache, 2, 3);
    assertThat(cache.store.lookup(others.slice(2, 3)).cardinality()).isEqualTo(1);
    assertThat(cache.store.lend(others.slice(2, 3))).isEmpty();
    cache.store.giveBack(lent);
    assertThat(cache.pool().inUse()).isEqualTo(cache.pool().limit());
  }

  /** What is given back late may be memory of another pool by then. */
  @Test
  void slotsOfAStoreThatHasClosedLeaveTheMemoryOfOthersAlone() throws Exception {
    settings.put("cache_buffer_divided", true);
    TestCache cache = store(ONE_SHARD, BLOCKS);
    int[] lent = cache.store.lend(dump(cache, 1, BLOCKS).slice(BLOCKS / 2, BLOCKS));
    assertThat(lent).hasSize(BLOCKS / 2);
    store(ONE_SHARD, BLOCKS);
    store(ONE_SHARD, BLOCKS);
    // It has more lent than it may have, and gives that back when it is not lent any more.
    assertThat(cache.pool().limit()).isLessThan(lent.length);
    cache.close();
    TestCache other = store(ONE_SHARD, BLOCKS);
    BlockIds ids = dump(other, 2, other.pool().limit());
    int[] inUse = other.store.lend(ids.slice(0, 1));
    cache.store.giveBack(lent);
    MemorySegment memory = mapped(other);
    BlockBytes.check(
        memory.asSlice(inUse[0] * SHARD_BYTES, SHARD_BYTES), ids.high(0), ids.low(0), 0, 0);
    assertThat(cache.pool().referenced()).isZero();
  }

  @Test
  void blocksAreLentWhereTheyWereRead() throws Exception {
    TestCache cache = over();
    BlockIds ids = BlockBytes.ids(1, 3);
    next.has(ids);
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    assertThat(cache.store.lend(ids)).isEmpty();
    next.nextLoad().serveAll();
    fetch.await(PATIENCE).requireOk();
    int[] lent = fetch.lent();
    assertThat(lent).hasSize(3);
    check(mapped(cache), ids, lent);
    for (int i = 0; i < 3 * BLOCKS; i++) {
      dump(cache, 100 + i, 1);
      next.nextDump().takeAll();
    }
    check(mapped(cache), ids, lent);
    cache.store.giveBack(lent);
    assertThat(cache.metrics.count("cache_miss_shards")).isEqualTo(3 * SHARDS);
    // Those that are in memory by now need no read.
    assertThat(fetched(cache, ids)).hasSize(3);
    assertThat(next.loads).isEmpty();
    assertThat(cache.metrics.count("cache_hit_shards")).isEqualTo(3 * SHARDS);
  }

  @Test
  void onlyTheBlocksBeforeOneThatCouldNotBeReadAreLent() throws Exception {
    TestCache cache = over();
    BlockIds ids = BlockBytes.ids(1, 4);
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    Held load = next.nextLoad();
    for (int shard = 0; shard < 4 * SHARDS; shard++) {
      if (shard == 2 * SHARDS + 1) {
        load.end(shard, ShardOutcome.CORRUPT, null);
      } else {
        load.serve(shard);
      }
    }
    assertThat(fetch.await(PATIENCE).failedShards().cardinality()).isEqualTo(1);
    int[] lent = fetch.lent();
    assertThat(lent).hasSize(2);
    check(mapped(cache), ids, lent);
    assertThat(cache.pool().referenced()).isEqualTo(2 * SHARDS);
    cache.store.giveBack(lent);
    assertNoneIsLent(cache);
  }

  @Test
  void noMoreIsFetchedThanMayBeLent() throws Exception {
    TestCache cache = over();
    BlockIds ids = BlockBytes.ids(1, BLOCKS);
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    assertThat(cache.store.fetch(BlockBytes.ids(2, 1))).isNull();
    Held load = next.nextLoad();
    assertThat(load.transfer.shardCount()).isEqualTo(BLOCKS / 2 * SHARDS);
    load.serveAll();
    fetch.await(PATIENCE).requireOk();
    assertThat(cache.store.lend(ids)).isEmpty();
    cache.store.giveBack(fetch.lent());
    assertNoneIsLent(cache);
  }

  @Test
  void whatComesTooLateIsNotLent() throws Exception {
    settings.put("timeout_ms", 50);
    TestCache cache = over();
    BlockIds ids = BlockBytes.ids(1, 2);
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    Held load = next.nextLoad();
    load.serve(0);
    assertThat(fetch.await(PATIENCE).outcome(1)).isEqualTo(ShardOutcome.EXPIRED);
    assertThat(fetch.lent()).isEmpty();
    for (int shard = 1; shard < 2 * SHARDS; shard++) {
      load.serve(shard);
    }
    assertNoneIsLent(cache);
  }

  @Test
  void whatWasRefusedMayBeLentLater() throws Exception {
    settings.put("waiting_queue_depth", 1);
    TestCache cache = over();
    Fetch first = Objects.requireNonNull(cache.store.fetch(BlockBytes.ids(1, 1)));
    assertThatThrownBy(() -> cache.store.fetch(BlockBytes.ids(2, 2)))
        .isInstanceOf(QueueFullException.class);
    next.nextLoad().serveAll();
    first.await(PATIENCE).requireOk();
    cache.store.giveBack(first.lent());
    assertNoneIsLent(cache);
  }

  /** Another load reads the same block, into the engine's memory. */
  @Test
  void aBlockThatIsBeingReadIsLentAsWell() throws Exception {
    TestCache cache = over();
    BlockIds ids = BlockBytes.ids(1, 1);
    TransferMemory memory = TransferMemory.ofBlocks(THREE_SHARDS, Placement.PACKED, ids);
    Task load = cache.store.load(memory.transfer());
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    next.nextLoad().serveAll();
    load.await(PATIENCE).requireOk();
    fetch.await(PATIENCE).requireOk();
    assertThat(next.loads).isEmpty();
    check(mapped(cache), ids, fetch.lent());
    cache.store.giveBack(fetch.lent());
    assertNoneIsLent(cache);
  }

  @Test
  void aPoolThatHasBecomeSmallerGivesBackWhatItKeptForAFetch() throws Exception {
    settings.put("cache_buffer_divided", true);
    TestCache cache = cache(ONE_SHARD, next, BLOCKS, settings);
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(BlockBytes.ids(1, BLOCKS / 2)));
    store(ONE_SHARD, BLOCKS);
    store(ONE_SHARD, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) {
      dump(cache, 10 + i, 1);
      next.nextDump().takeAll();
    }
    assertThat(cache.store.flush(PATIENCE).ok()).isTrue();
    assertThat(cache.pool().inUse()).isGreaterThan(cache.pool().limit());
    next.nextLoad().endAll(ShardOutcome.MISSING, null);
    fetch.await(PATIENCE);
    assertThat(fetch.lent()).isEmpty();
    assertThat(cache.pool().inUse()).isLessThanOrEqualTo(cache.pool().limit());
  }

  private TestCache over() {
    return cache(THREE_SHARDS, next, BLOCKS * SHARDS, settings);
  }

  /** Blocks of which nothing has to be read. */
  private static int[] fetched(TestCache cache, BlockIds ids) throws InterruptedException {
    Fetch fetch = Objects.requireNonNull(cache.store.fetch(ids));
    fetch.await(PATIENCE).requireOk();
    return fetch.lent();
  }

  /** As much may be lent as at the beginning, and no slot is held. */
  private static void assertNoneIsLent(TestCache cache) {
    assertThat(cache.pool().referenced()).isZero();
    int free = cache.pool().beginFetch(BLOCKS);
    assertThat(free).isEqualTo(BLOCKS / 2);
    cache.pool().endFetch(free);
  }

  private TestCache store(BlockLayout layout, int slots) {
    return cache(layout, null, slots, settings);
  }

  private static BlockIds dump(TestCache cache, long seed, int count) throws InterruptedException {
    BlockIds ids = BlockBytes.ids(seed, count);
    cache.dump(ids);
    return ids;
  }

  /** The memory as another process of this user maps it. */
  private static MemorySegment mapped(TestCache cache) throws IOException {
    Lending lending = Objects.requireNonNull(cache.store.lending());
    assertThat(lending.memory().byteSize()).isEqualTo(lending.slots() * lending.stride());
    Path path =
        Path.of("/proc", Long.toString(ProcessHandle.current().pid()), "fd")
            .resolve(Integer.toString(lending.descriptor()));
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
      return file.map(MapMode.READ_ONLY, 0, lending.memory().byteSize(), Arena.ofAuto());
    }
  }

  private static void check(MemorySegment memory, BlockIds ids, int[] lent) {
    for (int i = 0; i < lent.length; i++) {
      for (int shard = 0; shard < SHARDS; shard++) {
        MemorySegment bytes = memory.asSlice((lent[i] + shard) * SHARD_BYTES, SHARD_BYTES);
        BlockBytes.check(bytes, ids.high(i), ids.low(i), shard, 0);
      }
    }
  }
}

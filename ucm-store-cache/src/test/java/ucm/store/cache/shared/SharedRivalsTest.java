package ucm.store.cache.shared;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.BlockIds;
import ucm.platform.memory.SharedFile;
import ucm.store.cache.fixture.HeldNext;
import ucm.store.cache.fixture.Segments;
import ucm.store.cache.fixture.TestCache;
import ucm.store.cache.pool.Reservation;
import ucm.testkit.BlockBytes;
import ucm.testkit.TransferMemory;
import ucm.testkit.TransferMemory.Placement;

/** Workers that dump the same block: one of them brings all of it to the next stage. */
@Timeout(120)
final class SharedRivalsTest {

  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final BlockIds ID = BlockBytes.ids(1, 1);
  private static final int SHARD_BYTES = 4096;

  private final HeldNext firstNext = new HeldNext();
  private final HeldNext secondNext = new HeldNext();
  private final TestCache first = worker(firstNext);
  private final TestCache second = worker(secondNext);

  @AfterEach
  void closesAllAndLeavesNoSegment() {
    firstNext.letGo();
    secondNext.letGo();
    first.close();
    second.close();
    Segments.requireNone();
  }

  @Test
  void layersOfABlockAreBroughtByTheWorkerThatDumpedTheFirst() throws Exception {
    dump(first, layer(0));
    firstNext.nextDump().takeAll();
    dump(second, layer(0));
    dump(second, layer(1));
    assertThat(second.metrics.count("cache_dump_bytes")).isZero();
    assertThat(second.store.flush(Duration.ZERO).pendingBlocks()).isEqualTo(1);
    dump(first, layer(1));
    firstNext.nextDump().takeAll();
    secondNext.has(ID);
    assertThat(second.store.flush(PATIENCE).ok()).isTrue();
  }

  @Test
  void whatOneWorkerHasBegunAndLeftIsDumpedWholeByAnother() throws Exception {
    dump(first, layer(0));
    HeldNext.Held writing = firstNext.nextDump();
    dump(second, whole());
    assertThat(second.metrics.count("cache_dump_bytes")).as("while it is on its way").isZero();
    writing.takeAll();
    first.awaitUnreferenced();
    dump(second, whole());
    HeldNext.Held write = secondNext.nextDump();
    assertThat(write.transfer.shardCount()).isEqualTo(2);
    // The first one goes on after all, and finds the block the other's.
    dump(first, layer(1));
    assertThat(first.metrics.count("cache_dump_bytes")).isEqualTo(SHARD_BYTES);
    write.takeAll();
    TransferMemory loaded = whole();
    first.store.load(loaded.scribble().transfer()).await(PATIENCE).requireOk();
    loaded.check();
  }

  @Test
  void whoSeesASlotThatAnotherClaimsAtThatMomentSeesWhoseItIs(@TempDir Path folder)
      throws Exception {
    Path path =
        Files.createFile(
            folder.resolve("owners"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    SegmentLayout layout = SegmentLayout.of(SharedPeerTest.LAYOUT, 4);
    MemorySegment memory = Arena.ofAuto().allocate(layout.slotsAt(), SHARD_BYTES);
    SegmentWords words = new SegmentWords(memory);
    SlabManager.format(words, layout, 0);
    try (SharedFile one = Objects.requireNonNull(SharedFile.open(path));
        SharedFile two = Objects.requireNonNull(SharedFile.open(path))) {
      SegmentOwners owner = SegmentOwners.enter(one, words, layout);
      SharedStripe rival = new SharedStripe(0, layout, words, owner, true, _ -> {});
      int loaded = Reservation.number(rival.reserveForLoad(1, 1, 1, 0, null, 0, true));
      int _ = rival.filled(loaded, true);
      long watched = layout.slotWordAt(loaded + 1);
      SegmentWords held =
          new SegmentWords(memory) {
            @Override
            long get(long at) {
              if (at == watched && SlotWord.state(super.get(at)) == SlotWord.EMPTY) {
                assertThat(Reservation.kind(rival.reserveForDump(1, 1, 1, 1, true)))
                    .isEqualTo(Reservation.RESERVED);
              }
              return super.get(at);
            }
          };
      SegmentOwners other = SegmentOwners.enter(two, words, layout);
      SharedStripe own = new SharedStripe(0, layout, held, other, true, _ -> {});
      assertThat(Reservation.kind(own.reserveForDump(1, 1, 1, 1, true)))
          .isEqualTo(Reservation.ELSEWHERE);
    }
  }

  private static void dump(TestCache cache, TransferMemory memory) throws InterruptedException {
    cache.store.dump(memory.fill().transfer()).await(PATIENCE).requireOk();
  }

  private static TransferMemory layer(int shard) {
    return TransferMemory.ofShards(SharedPeerTest.LAYOUT, Placement.PACKED, ID, 0, shard);
  }

  private static TransferMemory whole() {
    return TransferMemory.ofBlocks(SharedPeerTest.LAYOUT, Placement.SCATTERED, ID);
  }

  private static TestCache worker(HeldNext next) {
    return new TestCache(
        SharedPeerTest.LAYOUT, next, 0, SharedPeerTest.settings(Segments.id("rivals"), 4, 60_000));
  }
}

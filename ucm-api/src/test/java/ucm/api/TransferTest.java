package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

final class TransferTest {

  private static final BlockLayout LAYOUT = BlockLayout.of(new long[] {5, 3}, 24);
  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 4096, 100);
  private static final BlockIds IDS = BlockIds.wrap(new long[] {1, 2, 3, 4});

  @Test
  void holdsOneSegmentPerTensorWhenScattered() {
    MemoryRegion other = MemoryRegion.device(1, 8192, 50);
    ShardListener listener = (transfer, shard, outcome) -> {};
    Transfer transfer =
        Transfer.scattered(LAYOUT)
            .shard(IDS, 1, 2)
            .piece(MEMORY, 10)
            .piece(other, 47)
            .shard(7, 8, 0)
            .piece(other, 0)
            .piece(MEMORY, 97)
            .build(listener);
    assertThat(transfer.layout()).isEqualTo(LAYOUT);
    assertThat(transfer.shardCount()).isEqualTo(2);
    assertThat(transfer.byteSize()).isEqualTo(16);
    assertThat(transfer.ids()).isEqualTo(BlockIds.wrap(new long[] {3, 4, 7, 8}));
    assertThat(transfer.shardIndex(0)).isEqualTo(2);
    assertThat(transfer.shardIndex(1)).isZero();
    assertThat(transfer.pieceCount()).isEqualTo(2);
    assertThat(transfer.pieceSize(0)).isEqualTo(5);
    assertThat(transfer.pieceSize(1)).isEqualTo(3);
    assertThat(transfer.region(0, 0)).isSameAs(MEMORY);
    assertThat(transfer.region(0, 1)).isSameAs(other);
    assertThat(transfer.region(1, 0)).isSameAs(other);
    assertThat(transfer.region(1, 1)).isSameAs(MEMORY);
    assertThat(transfer.offset(0, 1)).isEqualTo(47);
    assertThat(transfer.offset(1, 1)).isEqualTo(97);
    assertThat(transfer.listener()).isSameAs(listener);
    assertThat(transfer).hasToString("Transfer[2 shards, 16 bytes]");
  }

  @Test
  void holdsOneSegmentPerShardWhenPacked() {
    Transfer transfer = Transfer.packed(LAYOUT).shard(IDS, 0, 1).piece(MEMORY, 92).build();
    assertThat(transfer.pieceCount()).isEqualTo(1);
    assertThat(transfer.pieceSize(0)).isEqualTo(8);
    assertThat(transfer.offset(0, 0)).isEqualTo(92);
  }

  @Test
  void aSelectionOfItsShardsLiesInTheSameMemory() {
    BlockIds ids = BlockIds.wrap(new long[] {1, 2, 3, 4});
    BlockLayout layout = BlockLayout.uniform(4, 8, 16);
    Transfer.Builder builder = Transfer.scattered(layout).after(7);
    for (int i = 0; i < 4; i++) {
      builder.shard(ids, i / 2, i % 2).piece(MEMORY, i).piece(MEMORY, 10 - i);
    }
    Transfer whole = builder.build();
    Transfer some = whole.select(new int[] {3, 0}, ShardListener.NONE);
    assertThat(some.shardCount()).isEqualTo(2);
    assertThat(some.ids().hex(0)).isEqualTo(ids.hex(1));
    assertThat(some.ids().hex(1)).isEqualTo(ids.hex(0));
    assertThat(some.shardIndex(0)).isEqualTo(1);
    assertThat(some.pieceCount()).isEqualTo(2);
    assertThat(some.offset(0, 0)).isEqualTo(3);
    assertThat(some.offset(1, 1)).isEqualTo(10);
    assertThat(some.region(0, 1)).isSameAs(MEMORY);
    assertThat(some.event()).isEqualTo(7);
    assertThat(whole.select(new int[0], ShardListener.NONE).shardCount()).isZero();
  }

  @Test
  void namesAnEventForOneTransferOnly() {
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    Transfer waits = builder.shard(IDS, 0, 1).piece(MEMORY, 0).after(0x7f00_1234_5678L).build();
    assertThat(waits.event()).isEqualTo(0x7f00_1234_5678L);
    assertThat(builder.shard(IDS, 0, 1).piece(MEMORY, 0).build().event()).isZero();
  }

  @Test
  void knowsWhetherAllOfItIsOnOneDevice() {
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(100));
    MemoryRegion other = MemoryRegion.device(1, 8192, 100);
    assertThat(two(MEMORY, MEMORY).isOn(0)).isTrue();
    assertThat(two(MEMORY, MEMORY).isOn(1)).isFalse();
    assertThat(two(MEMORY, other).isOn(0)).isFalse();
    assertThat(two(MEMORY, host).isOn(0)).isFalse();
    assertThat(two(host, host).isOn(0)).isFalse();
  }

  private static Transfer two(MemoryRegion first, MemoryRegion second) {
    return Transfer.packed(LAYOUT)
        .shard(IDS, 0, 0)
        .piece(first, 0)
        .shard(IDS, 0, 1)
        .piece(second, 0)
        .build();
  }

  @Test
  void mayHoldNoShards() {
    Transfer transfer = Transfer.scattered(LAYOUT).build();
    assertThat(transfer.shardCount()).isZero();
    assertThat(transfer.byteSize()).isZero();
    assertThat(transfer.ids().isEmpty()).isTrue();
    assertThat(transfer.isHost()).isTrue();
  }

  @Test
  void refusesSegmentsOutsideTheirRegion() {
    for (long offset : new long[] {-1, 96, 101, Long.MAX_VALUE}) {
      Transfer.Builder builder = Transfer.scattered(LAYOUT).shard(IDS, 0, 0);
      assertThatThrownBy(() -> builder.piece(MEMORY, offset))
          .as("offset %d", offset)
          .isInstanceOf(IndexOutOfBoundsException.class);
      builder.piece(MEMORY, 95).piece(MEMORY, 97);
      assertThat(builder.build().shardCount()).as("goes on with a good one").isEqualTo(1);
    }
    assertThatThrownBy(() -> Transfer.packed(LAYOUT).shard(IDS, 0, 0).piece(MEMORY, 93))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void refusesShardsAndIdsThatAreNotThere() {
    Transfer.Builder builder = Transfer.scattered(LAYOUT);
    assertThatThrownBy(() -> builder.shard(IDS, 0, 3))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> builder.shard(IDS, 0, -1))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> builder.shard(IDS, 2, 0))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(builder.build().shardCount()).isZero();
  }

  @Test
  void refusesShardsThatLackSegments() {
    Transfer.Builder builder = Transfer.scattered(LAYOUT);
    assertThatThrownBy(() -> builder.piece(MEMORY, 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("begin the next shard first");
    builder.shard(IDS, 0, 0).piece(MEMORY, 0);
    assertThatThrownBy(() -> builder.shard(IDS, 1, 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("shard 0 has 1 of 2 segments");
    assertThatThrownBy(builder::build)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("shard 0 has 1 of 2 segments");
    builder.piece(MEMORY, 8);
    assertThatThrownBy(() -> builder.piece(MEMORY, 16)).isInstanceOf(IllegalStateException.class);
    assertThat(builder.build().shardCount()).isEqualTo(1);
  }

  @Test
  void growsWithItsShardsAndRegions() {
    int count = 1000;
    MemoryRegion[] regions = new MemoryRegion[50];
    for (int i = 0; i < regions.length; i++) {
      regions[i] = MemoryRegion.device(0, i, 2L * count);
    }
    Transfer.Builder builder = Transfer.scattered(LAYOUT);
    for (int i = 0; i < count; i++) {
      builder.shard(i, -i, i % 3).piece(regions[i % 50], i).piece(regions[(7 * i) % 50], i + 1);
    }
    Transfer transfer = builder.build();
    assertThat(transfer.shardCount()).isEqualTo(count);
    for (int i = 0; i < count; i++) {
      assertThat(transfer.ids().high(i)).isEqualTo(i);
      assertThat(transfer.ids().low(i)).isEqualTo(-i);
      assertThat(transfer.shardIndex(i)).isEqualTo(i % 3);
      assertThat(transfer.region(i, 0)).isSameAs(regions[i % 50]);
      assertThat(transfer.region(i, 1)).isSameAs(regions[(7 * i) % 50]);
      assertThat(transfer.offset(i, 0)).isEqualTo(i);
      assertThat(transfer.offset(i, 1)).isEqualTo(i + 1);
    }
  }

  @Test
  void startsAfreshForTheNextTransfer() {
    Transfer.Builder builder = Transfer.packed(LAYOUT);
    Transfer first = builder.shard(IDS, 0, 0).piece(MEMORY, 1).build();
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(8));
    Transfer second = builder.shard(IDS, 1, 1).piece(host, 0).build();
    assertThat(first.region(0, 0)).isSameAs(MEMORY);
    assertThat(first.ids().high(0)).isEqualTo(1);
    assertThat(second.shardCount()).isEqualTo(1);
    assertThat(second.region(0, 0)).isSameAs(host);
    assertThat(first.isHost()).isFalse();
    assertThat(second.isHost()).as("nothing of the first is left").isTrue();
    assertThat(builder.build().shardCount()).isZero();
  }

  @Test
  void isOfTheHostWhenAllOfItIs() {
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(16));
    assertThat(scattered(host, host).isHost()).isTrue();
    assertThat(scattered(host, MEMORY).isHost()).isFalse();
    assertThat(scattered(MEMORY, MEMORY).isHost()).isFalse();
  }

  private static Transfer scattered(MemoryRegion first, MemoryRegion second) {
    return Transfer.scattered(LAYOUT).shard(IDS, 0, 0).piece(first, 0).piece(second, 8).build();
  }
}

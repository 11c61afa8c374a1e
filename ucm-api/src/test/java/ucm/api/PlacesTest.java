package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.util.BitSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class PlacesTest {

  private static final BlockLayout LAYOUT = BlockLayout.of(new long[] {5, 3}, 24);
  private static final MemoryRegion MEMORY = MemoryRegion.device(0, 4096, 100);
  private static final MemoryRegion OTHER = MemoryRegion.device(1, 8192, 50);
  private static final ShardListener NONE = ShardListener.NONE;

  @Test
  void placesPartOfATransferElsewhere() {
    ShardListener listener = (transfer, shard, outcome) -> {};
    Transfer engine = scattered(5);
    Places places = new Places(LAYOUT).add(OTHER, 42).add(MEMORY, 0).add(OTHER, 8);
    Transfer range = Transfer.packedRange(engine, 1, 4, places, listener);
    assertThat(range.layout()).isEqualTo(LAYOUT);
    assertThat(range.shardCount()).isEqualTo(3);
    assertThat(range.byteSize()).isEqualTo(24);
    assertThat(range.pieceCount()).isEqualTo(1);
    assertThat(range.pieceSize(0)).isEqualTo(8);
    assertThat(range.ids()).isEqualTo(engine.ids().slice(1, 4));
    assertThat(range.listener()).isSameAs(listener);
    assertThat(range.event()).as("what lies elsewhere waits for nothing").isZero();
    assertThat(range).hasToString("Transfer[3 shards, 24 bytes]");
    for (int i = 0; i < 3; i++) {
      assertThat(range.shardIndex(i)).isEqualTo(engine.shardIndex(i + 1));
      assertThat(range.region(i, 0)).isSameAs(i == 1 ? MEMORY : OTHER);
    }
    assertThat(range.offset(0, 0)).isEqualTo(42);
    assertThat(range.offset(1, 0)).isZero();
    assertThat(range.offset(2, 0)).isEqualTo(8);
    assertThat(engine.region(1, 0)).as("the other transfer is as it was").isSameAs(MEMORY);
    assertThat(engine.event()).isEqualTo(77);
  }

  @Test
  void placesPartOfAPartElsewhere() {
    Transfer engine = scattered(6);
    Transfer range = Transfer.packedRange(engine, 1, 6, placesFor(5), NONE);
    Transfer part = Transfer.packedRange(range, 2, 4, placesFor(2), NONE);
    assertThat(part.ids()).isEqualTo(engine.ids().slice(3, 5));
    assertThat(part.shardIndex(0)).isEqualTo(engine.shardIndex(3));
    assertThat(part.shardIndex(1)).isEqualTo(engine.shardIndex(4));
    assertThat(Transfer.packedRange(part, 1, 1, new Places(LAYOUT), NONE).shardCount()).isZero();
  }

  @Test
  void placesSomeShardsElsewhere() {
    Transfer engine = scattered(6);
    Places places = new Places(LAYOUT).add(OTHER, 42).add(MEMORY, 0).add(OTHER, 8);
    Transfer some = Transfer.packedSelection(engine, 1, bits(0, 2, 3), places, NONE);
    assertThat(some.shardCount()).isEqualTo(3);
    assertThat(some.pieceCount()).isEqualTo(1);
    assertThat(some.event()).isZero();
    int[] shards = {1, 3, 4};
    for (int i = 0; i < shards.length; i++) {
      assertThat(some.ids().hex(i)).isEqualTo(engine.ids().hex(shards[i]));
      assertThat(some.shardIndex(i)).isEqualTo(engine.shardIndex(shards[i]));
    }
    assertThat(some.offset(2, 0)).isEqualTo(8);
    assertThatThrownBy(() -> some.shardIndex(3)).isInstanceOf(IndexOutOfBoundsException.class);
    Transfer range = Transfer.packedRange(some, 1, 3, placesFor(2), NONE);
    assertThat(range.ids()).isEqualTo(engine.ids().slice(3, 5));
    assertThat(range.shardIndex(1)).isEqualTo(engine.shardIndex(4));
    Transfer other = Transfer.packedSelection(some, 0, bits(0, 2), placesFor(2), NONE);
    assertThat(other.ids().hex(1)).isEqualTo(engine.ids().hex(4));
    assertThat(other.shardIndex(1)).isEqualTo(engine.shardIndex(4));
  }

  @Test
  void keepsToTheShardsOfItsRange() {
    Transfer range = Transfer.packedRange(scattered(5), 1, 3, placesFor(2), NONE);
    for (int shard : new int[] {-1, 2}) {
      assertThatThrownBy(() -> range.shardIndex(shard))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> range.region(shard, 0))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> range.offset(shard, 0))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void refusesARangeThatDoesNotFit() {
    Transfer engine = scattered(3);
    assertThatThrownBy(() -> Transfer.packedRange(engine, 1, 4, placesFor(3), NONE))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> Transfer.packedSelection(engine, 1, bits(0, 2), placesFor(2), NONE))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> Transfer.packedSelection(engine, 0, bits(0, 2), placesFor(3), NONE))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Transfer.packedRange(engine, 2, 1, new Places(LAYOUT), NONE))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> Transfer.packedRange(engine, 0, 3, placesFor(2), NONE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("a transfer of 3 shards wants a place for each; found 2 places");
    Places others = new Places(BlockLayout.uniform(1, 8, 24)).add(MEMORY, 0);
    assertThatThrownBy(() -> Transfer.packedRange(engine, 0, 1, others, NONE))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("do not fit a transfer of");
  }

  @Test
  void refusesAPlaceBeyondItsRegion() {
    Places places = new Places(LAYOUT).add(MEMORY, 92);
    assertThatThrownBy(() -> places.add(MEMORY, 93)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> places.add(MEMORY, -1)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThat(places.size()).isEqualTo(1);
    assertThat(places).hasToString("Places[1 in 1 regions]");
  }

  @Test
  void isUsedForOneTransferAfterAnother() {
    Transfer engine = scattered(40);
    Places places = placesFor(40);
    Transfer first = Transfer.packedRange(engine, 0, 40, places, NONE);
    assertThat(first.offset(39, 0)).isEqualTo(39);
    places.clear();
    assertThat(places.size()).isZero();
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(8));
    Transfer second = Transfer.packedRange(engine, 7, 8, places.add(host, 0), NONE);
    assertThat(second.isHost()).as("nothing of the first is left").isTrue();
    assertThat(second.region(0, 0)).isSameAs(host);
    assertThat(second.ids()).isEqualTo(engine.ids().slice(7, 8));
    assertThat(first.shardCount()).isEqualTo(40);
    assertThat(first.ids()).as("is valid for ever").isEqualTo(engine.ids());
    assertThat(first.shardIndex(38)).isEqualTo(engine.shardIndex(38));
    assertThat(first.isOn(0)).as("as it was").isTrue();
    assertThat(first.isHost()).isFalse();
  }

  @Test
  void answersWhoAsksTooLateWithAnException() {
    Transfer engine = scattered(2);
    Places places = placesFor(2);
    Transfer first = Transfer.packedRange(engine, 0, 2, places, NONE);
    places.clear();
    Transfer second = Transfer.packedRange(engine, 0, 2, places.add(OTHER, 1).add(OTHER, 2), NONE);
    assertThatThrownBy(() -> first.region(0, 0))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("reused");
    assertThatThrownBy(() -> first.offset(1, 0)).isInstanceOf(IllegalStateException.class);
    assertThat(second.region(0, 0)).isSameAs(OTHER);
    assertThat(second.offset(1, 0)).isEqualTo(2);
  }

  @Test
  void takesNoMorePlacesOnceATransferWasMade() {
    Transfer engine = scattered(2);
    Places places = placesFor(2);
    Transfer range = Transfer.packedRange(engine, 0, 2, places, NONE);
    assertThatThrownBy(() -> places.add(MEMORY, 0)).isInstanceOf(IllegalStateException.class);
    assertThat(places.size()).isEqualTo(2);
    Transfer again = Transfer.packedRange(engine, 0, 2, places, NONE);
    assertThat(again.offset(1, 0)).as("one that was refused, say").isEqualTo(range.offset(1, 0));
  }

  @Test
  void knowsWhereAllOfItIs() {
    MemoryRegion host = MemoryRegion.host(Arena.ofAuto().allocate(8));
    assertThat(at(MEMORY, MEMORY).isOn(0)).isTrue();
    assertThat(at(MEMORY, MEMORY).isOn(1)).isFalse();
    assertThat(at(MEMORY, OTHER).isOn(0)).isFalse();
    assertThat(at(MEMORY, OTHER).isOn(1)).isFalse();
    assertThat(at(MEMORY, OTHER, MemoryRegion.device(1, 0, 8)).isOn(1)).isFalse();
    assertThat(at(host, host).isHost()).isTrue();
    assertThat(at(host, host).isOn(-1)).as("the host is no device").isFalse();
    assertThat(at(host, MEMORY).isHost()).isFalse();
    assertThat(at(MEMORY, host, host).isHost()).isFalse();
    assertThat(at().isHost()).isTrue();
    assertThat(at().isOn(3)).isTrue();
  }

  private static Transfer at(MemoryRegion... regions) {
    Places places = new Places(LAYOUT);
    for (MemoryRegion region : regions) {
      places.add(region, 0);
    }
    return Transfer.packedRange(scattered(regions.length), 0, regions.length, places, NONE);
  }

  private static Places placesFor(int count) {
    Places places = new Places(LAYOUT);
    for (int i = 0; i < count; i++) {
      places.add(MEMORY, i);
    }
    return places;
  }

  private static Transfer scattered(int shards) {
    Transfer.Builder builder = Transfer.scattered(LAYOUT);
    for (int i = 0; i < shards; i++) {
      builder.shard(i, 10 + i, i % 3).piece(MEMORY, i).piece(OTHER, i);
    }
    return builder.after(77).build();
  }

  private static BitSet bits(int... set) {
    return IntStream.of(set).collect(BitSet::new, BitSet::set, BitSet::or);
  }
}

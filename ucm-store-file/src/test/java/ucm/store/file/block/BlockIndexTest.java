package ucm.store.file.block;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class BlockIndexTest {

  @Test
  void forgetsOneForEachThatComesWhenFull() {
    BlockIndex index = new BlockIndex(3);
    index.scanned();
    for (int i = 0; i < 3; i++) {
      index.add(i, i);
    }
    assertThat(index.isComplete()).isTrue();
    index.add(1, 1);
    assertThat(index.forgottenCount()).as("known already").isZero();
    index.add(9, 9);
    assertThat(index.contains(9, 9)).isTrue();
    assertThat(index.size()).isEqualTo(3);
    assertThat(index.forgottenCount()).isEqualTo(1);
    assertThat(index.hasForgotten()).isTrue();
    assertThat(index.isComplete()).isFalse();
  }

  @Test
  void excludesOnlyWhatItWouldKnow() {
    BlockIndex index = new BlockIndex(2);
    index.add(5, 1);
    assertThat(index.excludes(5, 2)).as("files that were there may be unknown").isFalse();
    index.scanned();
    assertThat(index.excludes(5, 2)).isTrue();
    assertThat(index.excludes(5, 1)).isFalse();
    assertThat(index.remove(5, 1)).isTrue();
    assertThat(index.excludes(5, 1)).isTrue();
    for (int i = 0; i < 3; i++) {
      index.add(7, i);
    }
    assertThat(index.excludes(5, 2)).as("it has forgotten one").isFalse();
  }

  @Test
  void tellsOfRemovalsAlsoOfWhatItDoesNotKnow() {
    BlockIndex index = new BlockIndex(100);
    long before = index.removals(1, 2);
    assertThat(index.remove(1, 2)).isFalse();
    assertThat(index.removals(1, 2)).isNotEqualTo(before);
  }

  @Test
  void isOffWithoutRoom() {
    BlockIndex index = new BlockIndex(0);
    index.add(1, 2);
    assertThat(index.isOn()).isFalse();
    assertThat(index.contains(1, 2)).isFalse();
    assertThat(index.remove(1, 2)).isFalse();
    assertThat(index.removals(1, 2)).isZero();
    assertThat(index.size()).isZero();
  }
}

package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class BlockIdsTest {

  private static final String A = "0123456789abcdeffedcba9876543210";
  private static final String B = "ffffffffffffffff0000000000000001";
  private static final String C = "00000000000000000000000000000000";

  @Test
  void readsAndWritesHexadecimalDigits() {
    BlockIds ids = BlockIds.ofHex(A, B.toUpperCase(Locale.ROOT), C);
    assertThat(ids.size()).isEqualTo(3);
    assertThat(ids.hex(0)).isEqualTo(A);
    assertThat(ids.hex(1)).isEqualTo(B);
    assertThat(ids.hex(2)).isEqualTo(C);
    assertThat(ids.high(0)).isEqualTo(0x0123456789abcdefL);
    assertThat(ids.low(0)).isEqualTo(0xfedcba9876543210L);
    assertThat(ids.high(1)).isEqualTo(-1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "0123456789abcdeffedcba987654321",
        "0123456789abcdeffedcba98765432100",
        "0123456789abcdeffedcba987654321g",
        "-123456789abcdeffedcba9876543210",
        "0123456789abcdef-edcba9876543210"
      })
  void namesATextThatIsNoId(String bad) {
    assertThatThrownBy(() -> BlockIds.ofHex(A, bad))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("32 hexadecimal digits; found \"" + bad + "\"");
  }

  @Test
  void isBigEndianInBytes() {
    byte[] bytes = BlockIds.ofHex(A, B).toBytes();
    assertThat(bytes).hasSize(32);
    assertThat(bytes[0]).isEqualTo((byte) 0x01);
    assertThat(bytes[7]).isEqualTo((byte) 0xef);
    assertThat(bytes[8]).isEqualTo((byte) 0xfe);
    assertThat(bytes[31]).isEqualTo((byte) 0x01);
    assertThat(BlockIds.ofBytes(bytes)).isEqualTo(BlockIds.ofHex(A, B));
    bytes[0] = 9;
    assertThat(BlockIds.ofHex(A, B).toBytes()[0]).as("a fresh array").isEqualTo((byte) 1);
  }

  @Test
  void refusesHalfAnId() {
    assertThatThrownBy(() -> BlockIds.ofBytes(new byte[17]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("17 bytes");
    assertThatThrownBy(() -> BlockIds.wrap(new long[3]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("found 3");
  }

  @Test
  void slicesShareIdsAndKeepBounds() {
    BlockIds ids = BlockIds.ofHex(A, B, C);
    BlockIds slice = ids.slice(1, 3);
    assertThat(slice).isEqualTo(BlockIds.ofHex(B, C));
    assertThat(slice.slice(1, 2).hex(0)).isEqualTo(C);
    assertThat(slice.toBytes()).isEqualTo(BlockIds.ofHex(B, C).toBytes());
    assertThat(ids.slice(2, 2).isEmpty()).isTrue();
    assertThatThrownBy(() -> slice.high(2)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> slice.low(-1)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> slice.slice(1, 3)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 64, 65, 1000})
  void selectsSomeInTheirOrder(int sparse) {
    Random random = new Random(sparse);
    BlockIds ids = BlockIds.wrap(random.longs(2 * 3000).toArray());
    List<String> all = IntStream.range(0, ids.size()).mapToObj(ids::hex).toList();
    // A part of the whole, of a slice, of a part, and of a slice of a part.
    for (int depth = 0; depth < 4; depth++) {
      int start = all.size() / 10;
      BitSet some = new BitSet();
      List<String> expected = new ArrayList<>();
      for (int i = start; i < all.size() - start; i++) {
        if (random.nextInt(sparse) == 0) {
          some.set(i - start);
          expected.add(all.get(i));
        }
      }
      ids = ids.select(start, some);
      some.flip(0, all.size());
      assertThat(IntStream.range(0, ids.size()).mapToObj(ids::hex).toList()).isEqualTo(expected);
      assertThat(ids)
          .isEqualTo(BlockIds.ofHex(expected))
          .hasSameHashCodeAs(BlockIds.ofHex(expected));
      assertThat(ids.toBytes()).isEqualTo(BlockIds.ofHex(expected).toBytes());
      int cut = depth % 2 == 1 ? ids.size() / 4 : 0;
      ids = ids.slice(cut, ids.size());
      all = expected.subList(cut, expected.size());
    }
  }

  @Test
  void selectsOnlyWhatItHas() {
    BlockIds ids = BlockIds.ofHex(A, B, C).slice(1, 3);
    BitSet some = new BitSet();
    assertThat(ids.select(2, some).isEmpty()).isTrue();
    some.set(1);
    assertThat(ids.select(0, some)).isEqualTo(BlockIds.ofHex(C));
    assertThatThrownBy(() -> ids.select(1, some)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> ids.select(-1, some)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> ids.select(0, some).high(1))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void isComparedByItsIds() {
    BlockIds ids = BlockIds.ofHex(A, B, C);
    assertThat(ids.slice(0, 2))
        .isEqualTo(BlockIds.ofHex(A, B))
        .hasSameHashCodeAs(BlockIds.ofHex(A, B));
    assertThat(ids.slice(1, 2)).isEqualTo(BlockIds.of(-1, 1)).hasSameHashCodeAs(BlockIds.of(-1, 1));
    assertThat(ids)
        .isNotEqualTo(BlockIds.ofHex(A, C, B))
        .isNotEqualTo(ids.slice(0, 2))
        .isNotEqualTo(A);
    assertThat(BlockIds.empty()).isEqualTo(ids.slice(1, 1)).isEqualTo(BlockIds.ofHex(List.of()));
  }
}

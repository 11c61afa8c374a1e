package ucm.store.file.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.admin.StoredLayout;

final class StoredFooterTest {

  private static final BlockIds ID = BlockIds.ofHex("00112233445566778899aabbccddeeff");

  private static byte[] written(BlockLayout layout, int... crcs) {
    BlockFooter format = new BlockFooter(layout);
    BlockFooter.Buffer footer = format.newBuffer();
    format.write(footer, ID.high(0), ID.low(0), crcs);
    return footer.segment().toArray(ValueLayout.JAVA_BYTE);
  }

  private static StoredFooter read(byte[] footer, long fileSize) throws StoredFooter.Fault {
    return StoredFooter.read(ByteBuffer.wrap(footer), fileSize, ID.high(0), ID.low(0));
  }

  @Test
  void tellsTheLayoutOfWhateverBlock() throws Exception {
    byte[] uniform = written(BlockLayout.uniform(1000, 2000, 6000), 1, 2, 3);
    assertThat(StoredFooter.byteSize(ByteBuffer.wrap(uniform))).isEqualTo(4096);
    StoredFooter footer = read(uniform, 8192 + 4096);
    assertThat(footer.layout()).isEqualTo(new StoredLayout(6000, 2000, 2, 1000));
    assertThat(footer.layout().shardCount()).isEqualTo(3);
    assertThat(footer.fault(2, 3)).isNull();
    assertThat(footer.fault(2, 4)).contains("shard 2 is damaged");
    byte[] mixed = written(BlockLayout.of(new long[] {1500, 500}, 6000), 1, 2, 3);
    assertThat(read(mixed, 8192 + 4096).layout()).isEqualTo(new StoredLayout(6000, 2000, 2, 0));
  }

  @Test
  void findsTheStartOfALongFooterFromItsEnd() throws Exception {
    byte[] all = written(BlockLayout.uniform(1, 1, 1007), new int[1007]);
    byte[] tail = Arrays.copyOfRange(all, all.length - StoredFooter.TAIL_BYTES, all.length);
    assertThat(StoredFooter.byteSize(ByteBuffer.wrap(tail))).isEqualTo(8192);
    assertThat(read(all, 4096 + 8192).layout().shardCount()).isEqualTo(1007);
  }

  @Test
  void refusesEveryFlippedBitAndWhatIsNoFooter() {
    byte[] good = written(BlockLayout.uniform(1000, 2000, 6000), 1, 2, 3);
    Random random = new Random(4);
    for (int i = 0; i < 2000; i++) {
      byte[] bad = good.clone();
      int bit = random.nextInt(8 * bad.length);
      bad[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> read(bad, 12288))
          .as("bit %d", bit)
          .isInstanceOf(StoredFooter.Fault.class);
    }
    assertThatThrownBy(() -> read(good, 16384)).hasMessageContaining("does not fit its footer");
    assertThatThrownBy(
            () -> StoredFooter.read(ByteBuffer.wrap(good), 12288, ID.high(0), ID.low(0) + 1))
        .hasMessageContaining("another block");
    assertThat(StoredFooter.byteSize(ByteBuffer.allocate(4096))).isZero();
    assertThat(StoredFooter.byteSize(ByteBuffer.allocate(3))).isZero();
  }
}

package ucm.store.file.format;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;

final class BlockFooterTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(1000, 2000, 6000);
  private static final BlockIds ID = BlockIds.ofHex("00112233445566778899aabbccddeeff");
  private static final int[] CRCS = {0x11111111, 0x22222222, 0xfedcba98};

  private final BlockFooter format = new BlockFooter(LAYOUT);

  @Test
  void standsOnAMultipleOf4096AfterTheBlock() {
    assertThat(format.offset()).isEqualTo(8192);
    assertThat(format.gap()).isEqualTo(2192);
    assertThat(format.byteSize()).isEqualTo(4096);
    assertThat(format.fileSize()).isEqualTo(12288);
    BlockFooter aligned = new BlockFooter(BlockLayout.uniform(4096, 4096, 4096));
    assertThat(aligned.offset()).isEqualTo(4096);
    assertThat(aligned.gap()).isZero();
  }

  @Test
  void growsWithTheNumberOfShards() {
    // 56 bytes before the checksums, 16 after them.
    assertThat(new BlockFooter(BlockLayout.uniform(1, 1, 1006)).byteSize()).isEqualTo(4096);
    assertThat(new BlockFooter(BlockLayout.uniform(1, 1, 1007)).byteSize()).isEqualTo(8192);
  }

  @Test
  void keepsItsFormat() {
    MemorySegment bytes = written().segment();
    assertThat(text(bytes, 0)).isEqualTo("UCMBLOCK");
    assertThat(text(bytes, 4080)).isEqualTo("UCMENDBL");
    assertThat(bytes.get(ValueLayout.JAVA_INT, 8)).as("version").isEqualTo(1);
    assertThat(bytes.get(ValueLayout.JAVA_INT, 12)).as("tensors").isEqualTo(2);
    assertThat(bytes.asSlice(16, 16).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(ID.toBytes());
    assertThat(bytes.get(ValueLayout.JAVA_LONG, 32)).as("block size").isEqualTo(6000);
    assertThat(bytes.get(ValueLayout.JAVA_LONG, 40)).as("shard size").isEqualTo(2000);
    assertThat(bytes.get(ValueLayout.JAVA_INT, 48)).as("shards").isEqualTo(3);
    assertThat(bytes.get(ValueLayout.JAVA_INT, 56)).as("CRC of shard 0").isEqualTo(CRCS[0]);
    assertThat(bytes.get(ValueLayout.JAVA_INT, 4088)).as("length").isEqualTo(4096);
  }

  @Test
  void refusesEverySingleFlippedBit() {
    BlockFooter.Buffer footer = written();
    for (int bit = 0; bit < 8 * format.byteSize(); bit++) {
      flip(footer, bit);
      assertThat(fault(footer)).as("bit %d flipped", bit).isNotNull();
      flip(footer, bit);
    }
    assertThat(fault(footer)).isNull();
  }

  @Test
  void saysWhatIsWrong() {
    BlockFooter.Buffer footer = written();
    assertThat(format.fault(footer, ID.high(0), ID.low(0) + 1))
        .isEqualTo("it holds another block, " + ID.hex(0));
    flip(footer, 8 * 60);
    assertThat(fault(footer)).startsWith("the footer is damaged: its CRC32C is stored as ");
    BlockFooter.Buffer other = format.newBuffer();
    new BlockFooter(BlockLayout.of(new long[] {500, 1500}, 6000))
        .write(other, ID.high(0), ID.low(0), CRCS);
    assertThat(fault(other)).contains("another layout: block 6000, shard 2000 bytes, 2 tensors");
  }

  private BlockFooter.Buffer written() {
    BlockFooter.Buffer footer = format.newBuffer();
    footer.segment().fill((byte) 0xff);
    format.write(footer, ID.high(0), ID.low(0), CRCS);
    return footer;
  }

  private String fault(BlockFooter.Buffer footer) {
    return format.fault(footer, ID.high(0), ID.low(0));
  }

  private static void flip(BlockFooter.Buffer footer, int bit) {
    byte old = footer.segment().get(ValueLayout.JAVA_BYTE, bit / 8);
    footer.segment().set(ValueLayout.JAVA_BYTE, bit / 8, (byte) (old ^ 1 << bit % 8));
  }

  private static String text(MemorySegment bytes, int at) {
    return new String(
        bytes.asSlice(at, 8).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.US_ASCII);
  }
}

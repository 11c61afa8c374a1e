package ucm.store.s3.block;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectReply.End;

final class ObjectFormatTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(100, 200, 600);

  private static int crcOf(byte[] bytes, int from, int size) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, from, size);
    return (int) crc.getValue();
  }

  @Test
  void aSumOfPartsIsThatOfTheWhole() {
    Random random = new Random(1);
    for (int size : new int[] {0, 1, 7, 4096, 100_003}) {
      byte[] bytes = new byte[3 * size + 5];
      random.nextBytes(bytes);
      Crc32cSum part = new Crc32cSum(size);
      int sum = crcOf(bytes, 0, 5);
      for (int i = 0; i < 3; i++) {
        sum = part.then(sum, crcOf(bytes, 5 + i * size, size));
      }
      assertThat(sum).isEqualTo(crcOf(bytes, 0, bytes.length));
    }
  }

  @Test
  void metadataOfTheMostShardsFitIntoTwoKibibytes() {
    int most = ObjectFormat.MOST_SHARDS;
    ObjectFormat format = new ObjectFormat(BlockLayout.uniform(8, 8, 8L * most), "p");
    String text = ObjectFormat.METADATA + format.metadata(1, 2, new int[most]);
    assertThat(text.length()).isLessThanOrEqualTo(2048);
  }

  @Test
  void believesNoMetadataWithABitFlipped() {
    ObjectFormat format = new ObjectFormat(LAYOUT, "p");
    int[] crcs = {1, -2, 3};
    String text = format.metadata(5, 6, crcs);
    assertThat(format.shardCrcs(reply(text), 5, 6)).containsExactly(crcs);
    assertThat(format.shardCrcs(reply(text), 5, 7)).as("another block").isNull();
    ObjectFormat other = new ObjectFormat(BlockLayout.uniform(200, 200, 600), "p");
    assertThat(other.shardCrcs(reply(text), 5, 6)).as("another layout").isNull();
    assertThat(other.key(5, 6)).isNotEqualTo(format.key(5, 6));
    for (int i = 0; i < text.length(); i++) {
      for (int bit = 0; bit < 7; bit++) {
        char[] spoilt = text.toCharArray();
        spoilt[i] ^= (char) (1 << bit);
        assertThat(format.shardCrcs(reply(new String(spoilt)), 5, 6))
            .as("bit %s of %s", bit, i)
            .isNull();
      }
    }
  }

  private static ObjectReply reply(String metadata) {
    return new ObjectReply(End.ANSWERED, 200, "", Map.of(ObjectFormat.METADATA, metadata));
  }
}

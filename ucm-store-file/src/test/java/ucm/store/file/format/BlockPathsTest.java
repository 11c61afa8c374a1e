package ucm.store.file.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.platform.libc.NativePath;

final class BlockPathsTest {

  private static final BlockIds ID = BlockIds.ofHex("000102030405060708090a0b0c0d0e0f");

  @ParameterizedTest
  @CsvSource({
    "000102030405060708090a0b0c0d0e0f, ad258e8fcf86c7fd",
    "2527292b2d2f31333537393b3d3f4143, df3ef65111612205",
    "b9bfc5cbd1d7dde3e9eff5fb01070d13, ec2315d93ff066b8"
  })
  void hashesIdsAsTheOriginalDoes(String id, String hash) {
    BlockIds ids = BlockIds.ofHex(id);
    assertThat(Long.toHexString(BlockPaths.hash(ids.high(0), ids.low(0)))).isEqualTo(hash);
  }

  @Test
  void choosesTheDirectoryByTheUnsignedHash() {
    // ad258e8fcf86c7fd is negative as a long; 7 does not divide 2 to the 64.
    List<String> seven = List.of("/a", "/b", "/c", "/d", "/e", "/f", "/g");
    int expected = (int) Long.remainderUnsigned(0xad258e8fcf86c7fdL, 7);
    BlockPaths paths = new BlockPaths("Local", seven, 3);
    assertThat(paths.directoryOf(ID.high(0), ID.low(0))).isEqualTo(expected);
    assertThat(path(paths)).isEqualTo(seven.get(expected) + "/000/" + ID.hex(0));
  }

  @ParameterizedTest
  @CsvSource({"0, data, 1", "1, 0, 16", "2, 0e, 256", "3, 0ed, 4096", "5, 0edcb, 1048576"})
  void namesTheFolderByTheFirstDigits(int digits, String folder, int count) {
    BlockIds id = BlockIds.ofHex("0edcba98765432100123456789abcdef");
    BlockPaths paths = new BlockPaths("Local", List.of("/cache"), digits);
    assertThat(paths.block(new NativePath(), id.high(0), id.low(0)))
        .hasToString("/cache/" + folder + "/" + id.hex(0));
    assertThat(paths.folder(new NativePath(), 0, id.high(0))).hasToString("/cache/" + folder);
    assertThat(paths.folderName(id.high(0))).isEqualTo(folder);
    assertThat(paths.folderNumber(id.high(0))).isLessThan(count);
  }

  @Test
  void namesNothingOutsideTheTree() {
    BlockIds dots = BlockIds.ofBytes("../../etc/passwd".getBytes(StandardCharsets.US_ASCII));
    String path =
        new BlockPaths("Local", List.of("/cache"), 3)
            .block(new NativePath(), dots.high(0), dots.low(0))
            .toString();
    assertThat(path).matches("/cache/[0-9a-f]{3}/[0-9a-f]{32}");
  }

  @Test
  void refusesPathsThatTheKernelWouldNotTake() {
    NativePath path = NativePath.of("/" + "x".repeat(4000));
    assertThatThrownBy(() -> path.append("y".repeat(95)))
        .hasMessageContaining("at most 4095 bytes");
    assertThat(path.append("y".repeat(94)).toString()).hasSize(4095);
  }

  private static String path(BlockPaths paths) {
    return paths.block(new NativePath(), ID.high(0), ID.low(0)).toString();
  }
}

package ucm.platform.libc;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.MemoryRegion;
import ucm.platform.memory.MemoryCrc;

final class IoVectorTest {

  private final MemorySegment memory = Arena.ofAuto().allocate(100_000);
  private final MemoryRegion region = MemoryRegion.host(memory);

  @Test
  void makesNeighboursOneEntry() {
    IoVector vector = new IoVector().add(region, 0, 10).add(region, 10, 20).add(region, 40, 5);
    assertThat(vector.size()).isEqualTo(2);
    assertThat(vector.byteSize()).isEqualTo(35);
  }

  @Test
  void goesOnWhereACallStopped() {
    IoVector vector = new IoVector().add(region, 0, 10).add(region, 20, 10).add(region, 40, 10);
    vector.advance(4);
    assertThat(entry(vector)).containsExactly(memory.address() + 4, 6);
    vector.advance(6);
    assertThat(entry(vector)).containsExactly(memory.address() + 20, 10);
    vector.advance(15);
    assertThat(entry(vector)).containsExactly(memory.address() + 45, 5);
    vector.advance(5);
    assertThat(vector.size()).isZero();
    assertThat(vector.byteSize()).isZero();
    assertThatThrownBy(() -> vector.advance(1)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void takesAsManyEntriesAsTheKernel() {
    IoVector vector = new IoVector();
    for (int i = 0; i < IoVector.MAX_ENTRIES; i++) {
      vector.add(region, 2L * i, 1);
    }
    assertThatThrownBy(() -> vector.add(region, 50_000, 1)).hasMessageContaining("1024");
    assertThat(vector.clear().size()).isZero();
  }

  @Test
  void takesNothingOutsideItsRegion() {
    assertThatThrownBy(() -> new IoVector().add(region, 99_999, 2))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> new IoVector().add(MemorySegment.ofArray(new byte[1])))
        .hasMessageContaining("native memory");
  }

  @Test
  void takesNoMemoryThatIsGone() {
    MemoryRegion gone;
    try (Arena arena = Arena.ofShared()) {
      gone = MemoryRegion.host(arena.allocate(10));
    }
    assertThatThrownBy(() -> new IoVector().add(gone, 0, 10))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("freed");
  }

  @Test
  void writesNoMemoryThatMayOnlyBeRead() {
    MemoryRegion readOnly = MemoryRegion.host(memory.asReadOnly());
    assertThatThrownBy(() -> new IoVector().addToWrite(readOnly, 0, 10))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("read-only");
  }

  @Test
  void copiesBytesOfSeveralEntriesOutAndIn() {
    byte[] bytes = new byte[100_000];
    new Random(4).nextBytes(bytes);
    memory.copyFrom(MemorySegment.ofArray(bytes));
    IoVector vector = new IoVector().add(region, 10, 5).add(region, 100, 7).add(region, 50, 3);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment other = arena.allocate(20);
      vector.copyTo(4, other, 2, 10);
      assertThat(other.get(ValueLayout.JAVA_BYTE, 2)).isEqualTo(bytes[14]);
      assertThat(other.asSlice(3, 7).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(Arrays.copyOfRange(bytes, 100, 107));
      assertThat(other.asSlice(10, 2).toArray(ValueLayout.JAVA_BYTE))
          .isEqualTo(Arrays.copyOfRange(bytes, 50, 52));
      vector.copyTo(15, other, 20, 0);
      assertThatThrownBy(() -> vector.copyTo(6, other, 0, 10))
          .isInstanceOf(IndexOutOfBoundsException.class);
      other.fill((byte) 1);
      vector.copyFrom(5, other, 0, 8);
    }
    assertThat(memory.asSlice(100, 7).toArray(ValueLayout.JAVA_BYTE)).containsOnly(1);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 50)).isEqualTo((byte) 1);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 51)).isEqualTo(bytes[51]);
    assertThat(memory.get(ValueLayout.JAVA_BYTE, 14)).isEqualTo(bytes[14]);
  }

  @Test
  void computesChecksumsOverSegments() {
    byte[] bytes = new byte[100_000];
    new Random(3).nextBytes(bytes);
    memory.copyFrom(MemorySegment.ofArray(bytes));
    MemoryCrc crc = new MemoryCrc();
    for (int round = 0; round < 2; round++) {
      crc.reset();
      crc.update(region, 7, 1000);
      crc.update(region, 50_000, 50_000);
      CRC32C expected = new CRC32C();
      expected.update(bytes, 7, 1000);
      expected.update(bytes, 50_000, 50_000);
      assertThat(crc.value()).isEqualTo((int) expected.getValue());
    }
    assertThatThrownBy(() -> crc.update(region, 99_000, 1001))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void computesChecksumsInRegionsBeyondTwoGib(@TempDir Path directory) throws IOException {
    long size = (5L << 30) + 100;
    // A file with a hole: only the pages that are touched take memory.
    try (Arena arena = Arena.ofShared();
        FileChannel file = FileChannel.open(directory.resolve("hole"), CREATE, READ, WRITE)) {
      MemorySegment large = file.map(FileChannel.MapMode.READ_WRITE, 0, size, arena);
      MemoryRegion whole = MemoryRegion.host(large);
      long at = (3L << 30) - 50;
      large.asSlice(at, 100).fill((byte) 9);
      MemoryCrc crc = new MemoryCrc();
      crc.reset();
      crc.update(whole, at, 100);
      crc.update(whole, size - 10, 10);
      CRC32C expected = new CRC32C();
      expected.update(large.asSlice(at, 100).toArray(ValueLayout.JAVA_BYTE));
      expected.update(new byte[10]);
      assertThat(crc.value()).isEqualTo((int) expected.getValue());
    }
  }

  @SuppressWarnings("restricted") // The entry is in memory that the vector owns.
  private static long[] entry(IoVector vector) {
    MemorySegment entry = MemorySegment.ofAddress(vector.address()).reinterpret(16);
    return new long[] {entry.get(ValueLayout.JAVA_LONG, 0), entry.get(ValueLayout.JAVA_LONG, 8)};
  }
}

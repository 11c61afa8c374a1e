package ucm.platform.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import ucm.api.MemoryRegion;
import ucm.platform.libc.IoVector;

/** Copies of all lengths, from and to all offsets within a line of the processor's cache. */
final class StreamingCopyTest {

  private static final int LINE = 64;
  private static final int LONGEST = 20_000;
  private static final int ROOM = 2 * LONGEST + 4 * LINE;

  private final Random random = new Random(7);
  private final MemorySegment one = Arena.ofAuto().allocate(ROOM, LINE);
  private final MemorySegment scattered = Arena.ofAuto().allocate(ROOM, LINE);
  private final MemoryRegion region = MemoryRegion.host(scattered);
  private final IoVector segments = new IoVector();
  private int at;

  /** Two segments with a gap between them, and memory for their bytes, somewhere new each time. */
  private void choose(int first, int second) {
    at = random.nextInt(LINE);
    int from = random.nextInt(LINE);
    segments.clear().add(region, from, first);
    segments.add(region, from + first + 1 + random.nextInt(LINE), second);
  }

  private int length(int i) {
    // Around a line and a round of the loop, and then any.
    return i < 700 ? i : random.nextInt(LONGEST);
  }

  private byte[] fill(MemorySegment segment) {
    byte[] bytes = new byte[ROOM];
    random.nextBytes(bytes);
    segment.copyFrom(MemorySegment.ofArray(bytes));
    return bytes;
  }

  private byte[] inSegments(byte[] all) {
    byte[] bytes = new byte[(int) segments.byteSize()];
    int done = 0;
    for (int i = 0; i < segments.size(); i++) {
      int from = (int) (segments.address(i) - scattered.address());
      System.arraycopy(all, from, bytes, done, (int) segments.length(i));
      done += (int) segments.length(i);
    }
    return bytes;
  }

  private static int crc(byte[] bytes, int from, int length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, from, length);
    return (int) crc.getValue();
  }

  @Test
  void gathersAllBytesAndTouchesNoOthers() {
    for (int i = 0; i < 1500; i++) {
      choose(length(i), length(i / 2));
      byte[] expected = fill(one);
      byte[] bytes = inSegments(fill(scattered));
      StreamingCopy.gather(segments, one, at);
      System.arraycopy(bytes, 0, expected, at, bytes.length);
      assertThat(one.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(expected);
    }
  }

  @Test
  void scattersAllBytesAndTouchesNoOthers() {
    for (int i = 0; i < 1500; i++) {
      choose(length(i), length(i / 2));
      byte[] bytes = fill(one);
      byte[] before = fill(scattered);
      StreamingCopy.scatter(segments, one, at);
      assertScattered(bytes, before);
    }
  }

  private void assertScattered(byte[] bytes, byte[] before) {
    int done = at;
    for (int i = 0; i < segments.size(); i++) {
      int to = (int) (segments.address(i) - scattered.address());
      System.arraycopy(bytes, done, before, to, (int) segments.length(i));
      done += (int) segments.length(i);
    }
    assertThat(scattered.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(before);
  }

  @Test
  void takesTheChecksumOfWhatItScatters() {
    assumeTrue(StreamingCopy.isUsed(), "memory is copied " + StreamingCopy.state());
    for (int i = 0; i < 3000; i++) {
      choose(length(i), length(i / 2));
      byte[] bytes = fill(one);
      byte[] before = fill(scattered);
      int crc = StreamingCopy.scatterCrc(segments, one, at, 0);
      assertScattered(bytes, before);
      assertThat(crc).isEqualTo(crc(bytes, at, (int) segments.byteSize()));
    }
  }

  @Test
  void goesOnWithAChecksum() {
    assumeTrue(StreamingCopy.isUsed(), "memory is copied " + StreamingCopy.state());
    byte[] bytes = fill(one);
    for (int i = 0; i < 1000; i++) {
      int middle = random.nextInt(LONGEST);
      int first = StreamingCopy.scatterCrc(segments.clear().add(region, 3, middle), one, 0, 0);
      int all =
          StreamingCopy.scatterCrc(
              segments.clear().add(region, 3 + middle, LONGEST - middle), one, middle, first);
      assertThat(all).isEqualTo(crc(bytes, 0, LONGEST));
    }
  }

  @Test
  void readsThroughABufferInSteps() {
    assumeTrue(StreamingCopy.isUsed(), "memory is copied " + StreamingCopy.state());
    byte[] bytes = fill(one);
    ReadBuffer buffer = new ReadBuffer(1024);
    buffer.reset();
    // A step with two segments, and one that goes on in the second.
    read(buffer, bytes, 0, new IoVector().add(region, 100, 300).add(region, 1000, 400));
    buffer.update(region, 100, 300);
    buffer.update(region, 1000, 400);
    buffer.flush();
    read(buffer, bytes, 700, new IoVector().add(region, 1400, 124));
    buffer.update(region, 1400, 124);
    assertThat(buffer.value()).isEqualTo(crc(bytes, 0, 824));
    byte[] after = scattered.toArray(ValueLayout.JAVA_BYTE);
    assertThat(Arrays.copyOfRange(after, 100, 400)).isEqualTo(Arrays.copyOfRange(bytes, 0, 300));
    assertThat(Arrays.copyOfRange(after, 1000, 1524))
        .isEqualTo(Arrays.copyOfRange(bytes, 300, 824));
    IoVector tooMuch = new IoVector().add(region, 0, 1025);
    assertThatThrownBy(() -> buffer.replace(tooMuch)).isInstanceOf(IndexOutOfBoundsException.class);
  }

  /** What the kernel does. */
  private static void read(ReadBuffer buffer, byte[] bytes, int from, IoVector vector) {
    long wanted = vector.byteSize();
    buffer.replace(vector);
    assertThat(vector.byteSize()).isEqualTo(wanted);
    vector.copyFrom(0, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_BYTE, bytes), from, wanted);
  }

  @Test
  void copiesNothingBeyondTheEnd() {
    choose(10_000, 5_000);
    assertThatThrownBy(() -> StreamingCopy.gather(segments, one, ROOM - 14_999))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> StreamingCopy.scatter(segments, one, ROOM - 14_999))
        .isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> StreamingCopy.scatter(segments, one, -1))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void copiesNothingToOrFromMemoryThatIsGone() {
    MemorySegment gone;
    try (Arena arena = Arena.ofShared()) {
      gone = arena.allocate(ROOM);
    }
    choose(10_000, 5_000);
    assertThatThrownBy(() -> StreamingCopy.gather(segments, gone, 0))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> StreamingCopy.scatter(segments, gone, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void writesNoMemoryThatMayOnlyBeRead() {
    MemoryRegion readOnly = MemoryRegion.host(scattered.asReadOnly());
    assertThatThrownBy(() -> segments.addToWrite(readOnly, 0, 10))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("read-only");
  }
}

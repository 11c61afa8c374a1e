package ucm.platform.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.platform.libc.FileException;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/** Files read and written past the page cache, compared with the bytes the JDK reads from them. */
final class DirectIoTest {

  private static final int PAGE = 4096;

  private final LibcFileOperations files = new LibcFileOperations();
  private final DirectIo direct = new DirectIo(files);
  private final Random random = new Random(7);
  @TempDir private Path directory;

  @BeforeEach
  void skipsWhereTheFileSystemRefuses() {
    NativePath path = at("probe");
    int fd = files.create(path);
    try {
      files.setDirect(fd, path);
    } catch (FileException e) {
      abort("needs O_DIRECT in the folder of temporary files: " + e.getMessage());
    } finally {
      files.close(fd, path);
    }
  }

  @Test
  void writesAndReadsAnyOffsetOfAnyMemory() throws IOException {
    for (int round = 0; round < 300; round++) {
      long offset =
          random.nextInt(3) * (long) PAGE + (random.nextBoolean() ? 0 : random.nextInt(PAGE));
      MemorySegment[] segments = segments();
      byte[] expected = filled(segments);
      NativePath path = at("file" + round);
      int fd = files.create(path);
      files.setDirect(fd, path);
      direct.writeFully(fd, path, vector(segments), offset);
      byte[] inFile = Files.readAllBytes(Path.of(path.toString()));
      assertThat(Arrays.copyOfRange(inFile, (int) offset, inFile.length))
          .isEqualTo(bytes(segments));

      MemorySegment[] back = segments();
      long wanted = bytes(back).length;
      long got = direct.readFully(fd, path, vector(back), offset);
      assertThat(got).isEqualTo(Math.min(wanted, expected.length));
      assertThat(Arrays.copyOf(bytes(back), (int) got))
          .isEqualTo(Arrays.copyOf(expected, (int) got));
      files.close(fd, path);
      Files.delete(Path.of(path.toString()));
    }
  }

  @Test
  void readsNothingPastTheEnd() {
    NativePath path = at("short");
    int fd = files.create(path);
    MemorySegment memory = Arena.global().allocate(3L * PAGE, PAGE);
    files.writeAt(fd, path, vector(memory.asSlice(0, PAGE + 100)), 0);
    files.setDirect(fd, path);
    assertThat(direct.readFully(fd, path, vector(memory), 0)).isEqualTo(PAGE + 100);
    assertThat(direct.readFully(fd, path, vector(memory), PAGE + 100L)).isZero();
    assertThat(direct.readFully(fd, path, vector(memory), PAGE + 99L)).isEqualTo(1);
    assertThat(direct.readFully(fd, path, vector(memory), 5L * PAGE)).isZero();
    files.close(fd, path);
  }

  @Test
  void copiesNothingThatIsAligned() {
    MemorySegment memory = Arena.ofAuto().allocate(16L * PAGE, PAGE);
    AlignedVector aligned = new AlignedVector();
    IoVector from = vector(memory.asSlice(0, 2L * PAGE + 10), memory.asSlice(4L * PAGE, 6L * PAGE));
    aligned.planWrite(from, PAGE);
    assertThat(aligned.pages().size()).isEqualTo(1);
    assertThat(aligned.pages().address(0)).isEqualTo(memory.address());
    assertThat(aligned.pages().byteSize()).isEqualTo(2 * PAGE);
    from.clear().add(memory);
    aligned.planRead(from, 0);
    assertThat(aligned.pages().size()).isEqualTo(1);
    assertThat(aligned.pages().address(0)).isEqualTo(memory.address());
  }

  /** Up to five segments of memory: some aligned, some not, some longer than the bounce buffer. */
  private MemorySegment[] segments() {
    MemorySegment[] segments = new MemorySegment[1 + random.nextInt(5)];
    for (int i = 0; i < segments.length; i++) {
      int bound = random.nextInt(8) == 0 ? 200 * PAGE : 4 * PAGE;
      long length = random.nextBoolean() ? 1 + random.nextInt(bound) : PAGE * (1L + bound / PAGE);
      long shift = random.nextBoolean() ? 0 : 1 + random.nextInt(PAGE - 1);
      segments[i] = Arena.ofAuto().allocate(length + shift, PAGE).asSlice(shift, length);
    }
    return segments;
  }

  private byte[] filled(MemorySegment[] segments) {
    for (MemorySegment segment : segments) {
      byte[] content = new byte[(int) segment.byteSize()];
      random.nextBytes(content);
      segment.copyFrom(MemorySegment.ofArray(content));
    }
    return bytes(segments);
  }

  private static byte[] bytes(MemorySegment[] segments) {
    int size = Arrays.stream(segments).mapToInt(segment -> (int) segment.byteSize()).sum();
    byte[] all = new byte[size];
    int at = 0;
    for (MemorySegment segment : segments) {
      MemorySegment.copy(segment, ValueLayout.JAVA_BYTE, 0, all, at, (int) segment.byteSize());
      at += (int) segment.byteSize();
    }
    return all;
  }

  private static IoVector vector(MemorySegment... segments) {
    IoVector vector = new IoVector();
    for (MemorySegment segment : segments) {
      vector.add(segment);
    }
    return vector;
  }

  private NativePath at(String name) {
    return NativePath.of(directory.resolve(name).toString());
  }
}

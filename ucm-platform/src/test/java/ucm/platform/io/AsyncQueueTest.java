package ucm.platform.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/** Requests side by side on real files, and what the kernel may answer to them. */
final class AsyncQueueTest {

  private static final int PAGE = 4096;
  private static final int DEPTH = 8;

  private final LibcFileOperations files = new LibcFileOperations();
  private final Random random = new Random(11);
  private final MemorySegment memory = Arena.global().allocate(64L * PAGE, PAGE);
  private final MemorySegment back = Arena.global().allocate(64L * PAGE, PAGE);
  @TempDir private Path directory;
  private NativePath path = new NativePath();
  private int fd;

  @BeforeEach
  void opensAFileForDirectIo() {
    byte[] bytes = new byte[64 * PAGE];
    random.nextBytes(bytes);
    memory.copyFrom(MemorySegment.ofArray(bytes));
    path = NativePath.of(directory.resolve("file").toString());
    fd = files.create(path);
    try {
      files.setDirect(fd, path);
    } catch (FileException e) {
      abort("needs O_DIRECT in the folder of temporary files: " + e.getMessage());
    }
  }

  @AfterEach
  void closesIt() {
    files.close(fd, path);
  }

  @Test
  void endsRequestsInTheirOrderWithAllTheirBytes() throws IOException {
    try (AsyncQueue queue = new AsyncQueue(files, AioQueue::new, DEPTH)) {
      for (int round = 0; round < 3; round++) {
        writeAll(queue);
        assertThat(Files.readAllBytes(Path.of(path.toString())))
            .isEqualTo(memory.toArray(ValueLayout.JAVA_BYTE));
        readAll(queue);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 3, 1000})
  void takesNoShortResultForSuccess(long pages) {
    try (AsyncQueue queue = new AsyncQueue(files, d -> new FaultyQueue(d, pages, 0), DEPTH)) {
      writeAll(queue);
      readAll(queue);
    }
  }

  /** Eight requests of eight pages, the second half through memory that is not aligned. */
  private void writeAll(AsyncQueue queue) {
    IoVector[] vectors = new IoVector[DEPTH];
    MemorySegment odd = Arena.global().allocate(64L * PAGE + 1).asSlice(1).copyFrom(memory);
    for (int i = 0; i < DEPTH; i++) {
      MemorySegment from = i < DEPTH / 2 ? memory : odd;
      vectors[i] = new IoVector();
      for (long segment = 0; segment < 8; segment += 2) {
        vectors[i].add(from.asSlice((8L * i + segment) * PAGE, 2L * PAGE));
      }
      queue.write(fd, path, vectors[i], 8L * i * PAGE);
    }
    for (int i = 0; i < DEPTH; i++) {
      assertThat(queue.await()).isEqualTo(8L * PAGE);
    }
  }

  private void readAll(AsyncQueue queue) {
    back.fill((byte) 0);
    for (int i = 0; i < DEPTH; i++) {
      IoVector into = new IoVector();
      // Last segment first, so that none are neighbours in memory.
      for (long segment = 6; segment >= 0; segment -= 2) {
        into.add(back.asSlice((8L * i + segment) * PAGE, 2L * PAGE));
      }
      queue.read(fd, path, into, 8L * i * PAGE);
    }
    for (int i = 0; i < DEPTH; i++) {
      assertThat(queue.await()).isEqualTo(8L * PAGE);
      for (long segment = 0; segment < 8; segment += 2) {
        MemorySegment got = back.asSlice((8L * i + 6 - segment) * PAGE, 2L * PAGE);
        MemorySegment expected = memory.asSlice((8L * i + segment) * PAGE, 2L * PAGE);
        assertThat(got.mismatch(expected)).as("request %d, segment %d", i, segment).isEqualTo(-1);
      }
    }
  }

  @Test
  void writesAnyOffsetAndReadsOnlyWhatIsThere() throws IOException {
    try (AsyncQueue queue = new AsyncQueue(files, AioQueue::new, DEPTH)) {
      queue.write(fd, path, new IoVector().add(memory.asSlice(0, 3 * PAGE + 17)), 100);
      queue.write(fd, path, new IoVector().add(memory.asSlice(9, 5)), 4L * PAGE);
      assertThat(queue.await()).isEqualTo(3 * PAGE + 17);
      assertThat(queue.await()).isEqualTo(5);
      assertThat(Files.size(Path.of(path.toString()))).isEqualTo(4 * PAGE + 5);
      queue.read(fd, path, new IoVector().add(back.asSlice(0, 3 * PAGE + 17)), 100);
      queue.read(fd, path, new IoVector().add(back.asSlice(4L * PAGE, 5000)), 4L * PAGE);
      queue.read(fd, path, new IoVector().add(back.asSlice(8L * PAGE, 10)), 40L * PAGE);
      assertThat(queue.await()).isEqualTo(3 * PAGE + 17);
      assertThat(queue.await()).isEqualTo(5);
      assertThat(queue.await()).isZero();
      MemorySegment head = memory.asSlice(0, 3 * PAGE + 17);
      assertThat(back.asSlice(0, 3 * PAGE + 17).mismatch(head)).isEqualTo(-1);
      assertThat(back.asSlice(4L * PAGE, 5).mismatch(memory.asSlice(9, 5))).isEqualTo(-1);
    }
  }

  @Test
  void saysWhichRequestFailedAndGoesOnAfterADrain() {
    try (AsyncQueue queue = new AsyncQueue(files, d -> new FaultyQueue(d, 1000, 3), DEPTH)) {
      for (int i = 0; i < 5; i++) {
        queue.write(fd, path, new IoVector().add(memory.asSlice(0, PAGE)), (long) i * PAGE);
      }
      for (int i = 0; i < 3; i++) {
        assertThat(queue.await()).isEqualTo(PAGE);
      }
      assertThatThrownBy(queue::await)
          .isInstanceOf(FileException.class)
          .hasMessageContaining("pwritev " + path + ": EIO");
      queue.drain();
      writeAll(queue);
      readAll(queue);
    }
  }

  @Test
  void tellsOfARequestThatTheKernelDoesNotTake() {
    try (AsyncQueue queue = new AsyncQueue(files, AioQueue::new, DEPTH)) {
      queue.write(fd, path, new IoVector().add(memory.asSlice(0, PAGE)), 0);
      queue.read(-1, path, new IoVector().add(back.asSlice(0, PAGE)), 0);
      queue.read(fd, path, new IoVector().add(back.asSlice(PAGE, PAGE)), 0);
      assertThat(queue.await()).isEqualTo(PAGE);
      assertThatThrownBy(queue::await).hasMessageContaining("EBADF");
      queue.drain();
      readNothingWrong(queue);
    }
  }

  private void readNothingWrong(AsyncQueue queue) {
    queue.read(fd, path, new IoVector().add(back.asSlice(0, PAGE)), 0);
    assertThat(queue.await()).isEqualTo(PAGE);
    assertThat(back.asSlice(0, PAGE).mismatch(memory.asSlice(0, PAGE))).isEqualTo(-1);
  }

  @Test
  void saysThatTheKernelRefusesAQueue() {
    // More than any machine allows, and fewer than is an invalid number.
    assertThatThrownBy(() -> new AioQueue(4_000_000))
        .isInstanceOfSatisfying(
            FileException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EAGAIN))
        .hasMessageContaining("io_setup");
  }

  /** The kernel's queue, each of whose requests moves few pages, and one of which fails. */
  private static final class FaultyQueue implements KernelQueue {

    private final AioQueue real;
    private final long pages;
    private final int failing;
    private int count;

    FaultyQueue(int depth, long pages, int failing) {
      this.real = new AioQueue(depth);
      this.pages = pages;
      this.failing = failing;
    }

    @Override
    public void gather(int slot, boolean isWrite, int fd, IoVector vector, long offset) {
      long bytes = Math.min(vector.byteSize(), pages * PAGE);
      vector.setHead(new IoVector().setHead(vector, bytes), bytes);
      real.gather(slot, isWrite, fd, vector, offset);
    }

    @Override
    public void submit() {
      real.submit();
    }

    @Override
    public void await(Listener listener) {
      real.await(
          (slot, result) -> {
            boolean fails = failing > 0 && count++ == failing;
            listener.ended(slot, fails ? -Errno.EIO : result);
          });
    }

    @Override
    public void close() {
      real.close();
    }
  }
}

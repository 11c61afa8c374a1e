package ucm.store.ds3fs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.StoreMetrics;
import ucm.platform.libc.Errno;
import ucm.platform.libc.FileException;
import ucm.platform.libc.FileOperations;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

final class RingQueueTest {

  private static final long MIB = 1 << 20;
  private static final int PAGE = 4096;
  private static final long PATIENCE = TimeUnit.SECONDS.toNanos(60);

  @TempDir private Path mount;

  private final Arena arena = Arena.ofShared();
  private final Random random = new Random(3);
  private SimulatedHf3fs hf3fs;
  private Map<String, Long> before;
  private Ds3fsConfig config;
  private Mount point;
  private RegisteredFiles registered;
  private FileOperations files;
  private RingQueue queue;

  @BeforeEach
  void load() throws Exception {
    mount = mount.toRealPath();
    hf3fs = SimulatedHf3fs.load(mount);
    before = hf3fs.kept();
  }

  private void open(int entries, int depth, long iovBytes, long timeoutNanos) {
    RingSettings settings = new RingSettings(entries, depth, -1);
    List<String> directories = List.of(mount.toString());
    config = new Ds3fsConfig(directories, 1, 1, settings, iovBytes, iovBytes, "", "", timeoutNanos);
    point = new Mount(mount.toString(), directories, config, StoreMetrics.NONE);
    registered = new RegisteredFiles();
    registered.on(List.of(point));
    files = new Ds3fsFiles(new LibcFileOperations(), registered);
    queue = new RingQueue(List.of(point), registered, config);
  }

  @AfterEach
  void leavesNothingAndMisusesNothing() {
    queue.close();
    point.close();
    hf3fs.requireNoMisuse();
    assertThat(hf3fs.kept()).isEqualTo(before);
    arena.close();
  }

  private MemorySegment bytes(long size) {
    byte[] bytes = new byte[(int) size];
    random.nextBytes(bytes);
    MemorySegment segment = arena.allocate(size, 1);
    MemorySegment.copy(bytes, 0, segment, ValueLayout.JAVA_BYTE, 0, bytes.length);
    return segment;
  }

  private static byte[] array(MemorySegment segment) {
    return segment.toArray(ValueLayout.JAVA_BYTE);
  }

  /** Cuts memory into segments of odd sizes, with gaps between them elsewhere. */
  private static IoVector segments(MemorySegment of, long size) {
    IoVector vector = new IoVector();
    long at = 0;
    for (int i = 0; at < size; i++) {
      long length = Math.min(size - at, 1 + (i * 7919L) % 40_000);
      vector.add(of.asSlice(at, length));
      at += length;
    }
    return vector;
  }

  @ParameterizedTest
  @CsvSource({"1, 0", "1, 1", "64, 0", "64, -3", "7, 5", "256, 8", "8, 8", "1024, 128"})
  void movesEveryByteWhateverTheRingIs(int entries, int depth) throws Exception {
    open(entries, depth, 2 * MIB, PATIENCE);
    hf3fs.shortEvery(5);
    int steps = 40;
    long stepBytes = 100_003;
    MemorySegment source = bytes(steps * stepBytes);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    move(true, fd, path, source, steps, stepBytes);
    assertThat(Files.readAllBytes(mount.resolve("file"))).isEqualTo(array(source));

    MemorySegment target = arena.allocate(steps * stepBytes, 1);
    move(false, fd, path, target, steps, stepBytes);
    assertThat(target.mismatch(source)).isEqualTo(-1);
    assertThat(hf3fs.count("shorts")).isPositive();
    if (depth > 0) {
      assertThat(hf3fs.count("largest_batch")).isEqualTo(depth);
    }
    files.close(fd, path);
  }

  private void move(
      boolean isWrite, int fd, NativePath path, MemorySegment memory, int steps, long stepBytes) {
    List<IoVector> vectors = new ArrayList<>();
    int awaited = 0;
    for (int i = 0; i < steps; i++) {
      if (i - awaited == queue.depth()) {
        assertThat(queue.await()).isEqualTo(stepBytes);
        awaited++;
      }
      IoVector vector = segments(memory.asSlice(i * stepBytes, stepBytes), stepBytes);
      vectors.add(vector);
      if (isWrite) {
        queue.write(fd, path, vector, i * stepBytes);
      } else {
        queue.read(fd, path, vector, i * stepBytes);
      }
    }
    for (; awaited < steps; awaited++) {
      assertThat(queue.await()).isEqualTo(stepBytes);
    }
    assertThat(vectors).allMatch(vector -> vector.byteSize() == 0);
  }

  @Test
  void hasManyRequestsUnderWayOnOneRing() throws Exception {
    open(64, 0, 64 * MIB, PATIENCE);
    hf3fs.hold(true);
    MemorySegment source = bytes(64 * PAGE);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    List<IoVector> vectors = new ArrayList<>();
    for (int i = 0; i < 64; i++) {
      vectors.add(new IoVector().add(source.asSlice(i * (long) PAGE, PAGE)));
      queue.write(fd, path, vectors.get(i), i * (long) PAGE);
    }
    assertThat(hf3fs.count("under_way")).isEqualTo(64);
    assertThat(hf3fs.count("submits")).isZero();
    hf3fs.hold(false);
    for (int i = 0; i < 64; i++) {
      queue.await();
    }
    assertThat(hf3fs.count("max_under_way")).isEqualTo(64);
    assertThat(hf3fs.count("submits")).isEqualTo(1);
    assertThat(Files.readAllBytes(mount.resolve("file"))).isEqualTo(array(source));
    files.close(fd, path);
  }

  @Test
  void tellsHowFarAReadCameAtTheEndOfTheFile() throws Exception {
    open(8, 0, MIB, PATIENCE);
    Path file = Files.write(mount.resolve("file"), array(bytes(10_000)));
    NativePath path = NativePath.of(file.toString());
    int fd = files.openRead(path);
    MemorySegment target = arena.allocate(20_000);
    queue.read(fd, path, new IoVector().add(target), 0);
    queue.read(fd, path, new IoVector().add(target.asSlice(0, 100)), 10_000);
    assertThat(queue.await()).isEqualTo(10_000);
    assertThat(queue.await()).isZero();
    assertThat(target.asSlice(0, 10_000).toArray(ValueLayout.JAVA_BYTE))
        .isEqualTo(Files.readAllBytes(file));
    files.close(fd, path);
  }

  @Test
  void namesLentMemoryInRequestsAndCopiesTheRest() throws Exception {
    open(64, 0, MIB, PATIENCE);
    MemorySegment lent = point.offer(4 * MIB);
    MemorySegment source = bytes(4 * MIB + 5000);
    lent.copyFrom(source.asSlice(0, 4 * MIB));
    MemorySegment rest = source.asSlice(4 * MIB);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    IoVector vector = new IoVector();
    // Every other slot, so that neighbours in the file are none in memory.
    long slot = 512 << 10;
    for (int i : new int[] {0, 2, 4, 6, 1, 3, 5, 7}) {
      vector.add(lent.asSlice(i * slot, slot));
    }
    vector.add(rest);
    queue.write(fd, path, vector, 0);
    assertThat(queue.await()).isEqualTo(4 * MIB + 5000);
    assertThat(hf3fs.count("written_bytes")).isEqualTo(4 * MIB + 5000);
    assertThat(hf3fs.count("writes")).isEqualTo(9);

    lent.fill((byte) 0);
    IoVector into = new IoVector();
    for (int i : new int[] {0, 2, 4, 6, 1, 3, 5, 7}) {
      into.add(lent.asSlice(i * slot, slot));
    }
    MemorySegment tail = arena.allocate(5000);
    into.add(tail);
    hf3fs.shortEvery(3);
    queue.read(fd, path, into, 0);
    assertThat(queue.await()).isEqualTo(4 * MIB + 5000);
    assertThat(lent.mismatch(source.asSlice(0, 4 * MIB))).isEqualTo(-1);
    assertThat(tail.mismatch(rest)).isEqualTo(-1);
    files.close(fd, path);
  }

  @Test
  void failsTheRequestThatFailedAndNoOther() throws Exception {
    open(16, 0, 16 * MIB, PATIENCE);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    MemorySegment source = bytes(PAGE);
    queue.write(fd, path, new IoVector().add(source), 0);
    queue.await();
    hf3fs.fail("write", 1, 1, Errno.EDQUOT);
    queue.write(fd, path, new IoVector().add(source), PAGE);
    assertThatThrownBy(queue::await)
        .isInstanceOf(FileException.class)
        .hasMessageContaining("USRBIO write of " + path)
        .hasMessageContaining("EDQUOT");
    queue.drain();
    queue.write(fd, path, new IoVector().add(source), PAGE);
    assertThat(queue.await()).isEqualTo(PAGE);
    files.close(fd, path);
  }

  @ParameterizedTest
  @CsvSource({"prep_io", "submit_ios", "wait_for_ios", "reg_fd"})
  void saysWhatFailedAndGoesOnAfterwards(String call) throws Exception {
    open(16, 0, 16 * MIB, PATIENCE);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    MemorySegment source = bytes(PAGE);
    hf3fs.fail(call, 1, 1, Errno.EIO);
    assertThatThrownBy(
            () -> {
              queue.write(fd, path, new IoVector().add(source), 0);
              queue.await();
            })
        .isInstanceOf(FileException.class)
        .hasMessageContaining("hf3fs_" + call)
        .hasMessageContaining("EIO");
    queue.drain();
    assertThat(hf3fs.count("under_way")).isZero();
    queue.write(fd, path, new IoVector().add(source), 0);
    assertThat(queue.await()).isEqualTo(PAGE);
    files.close(fd, path);
  }

  @Test
  void givesUpWhatIsNotAnsweredInTimeAndLeavesTheCallersMemoryAlone() throws Exception {
    open(4, 0, 4 * MIB, TimeUnit.MILLISECONDS.toNanos(50));
    Path file = Files.write(mount.resolve("file"), array(bytes(PAGE)));
    NativePath path = NativePath.of(file.toString());
    int fd = files.openRead(path);
    MemorySegment target = arena.allocate(PAGE);
    hf3fs.hold(true);
    for (int i = 0; i < 3; i++) {
      queue.read(fd, path, new IoVector().add(target), 0);
    }
    assertThatThrownBy(queue::await).hasMessageContaining("ETIMEDOUT");
    queue.drain();
    files.close(fd, path);
    hf3fs.hold(false);
    hf3fs.awaitIdle();
    assertThat(array(target)).containsOnly(0);

    // Their slots come back with the answers, which go nowhere else.
    int again = files.openRead(path);
    MemorySegment other = arena.allocate(PAGE);
    int attempts = 0;
    while (!areAnsweredInTime(4, again, path, other)) {
      assertThat(++attempts).as("attempts").isLessThan(100);
    }
    assertThat(array(other)).isEqualTo(Files.readAllBytes(file));
    assertThat(array(target)).containsOnly(0);
    files.close(again, path);
  }

  /** Reads a page so many times at once; false when that took too long, as on a busy machine. */
  private boolean areAnsweredInTime(int reads, int fd, NativePath path, MemorySegment into)
      throws Exception {
    for (int i = 0; i < reads; i++) {
      queue.read(fd, path, new IoVector().add(into), 0);
    }
    try {
      for (int i = 0; i < reads; i++) {
        assertThat(queue.await()).isEqualTo(PAGE);
      }
      return true;
    } catch (FileException e) {
      assertThat(e.errno()).isEqualTo(Errno.ETIMEDOUT);
      queue.drain();
      hf3fs.awaitIdle();
      return false;
    }
  }

  @Test
  void waitsBeyondTheDeadlineForLentMemory() throws Exception {
    open(4, 0, MIB, TimeUnit.MILLISECONDS.toNanos(20));
    MemorySegment lent = point.offer(MIB);
    Path file = Files.write(mount.resolve("file"), array(bytes(MIB)));
    NativePath path = NativePath.of(file.toString());
    int fd = files.openRead(path);
    hf3fs.hold(true);
    queue.read(fd, path, new IoVector().add(lent), 0);
    assertThatThrownBy(queue::await).hasMessageContaining("ETIMEDOUT");
    long waits = hf3fs.count("waits");
    Thread drainer = Thread.ofPlatform().start(queue::drain);
    while (drainer.isAlive() && hf3fs.count("waits") < waits + 3) {
      Thread.onSpinWait();
    }
    assertThat(drainer.isAlive()).as("waits though the deadline has passed").isTrue();
    hf3fs.hold(false);
    drainer.join();
    assertThat(hf3fs.count("under_way")).isZero();
    files.close(fd, path);
  }

  @Test
  void threadsBeyondTheWorkersHaveMemoryOfTheirOwn() throws Exception {
    open(16, 0, MIB, PATIENCE);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    MemorySegment source = bytes(2 * PAGE);
    queue.write(fd, path, new IoVector().add(source.asSlice(0, PAGE)), 0);
    queue.await();
    long iovs = hf3fs.count("iovs");
    RingQueue secondQueue = new RingQueue(List.of(point), registered, config);
    for (int i = 0; i < 2; i++) {
      secondQueue.write(fd, path, new IoVector().add(source.asSlice(PAGE, PAGE)), PAGE);
      assertThat(secondQueue.await()).isEqualTo(PAGE);
    }
    assertThat(hf3fs.count("iovs")).isEqualTo(iovs + 1);
    assertThat(Files.readAllBytes(mount.resolve("file"))).isEqualTo(array(source));
    files.close(fd, path);
    secondQueue.close();
  }

  @ParameterizedTest
  @CsvSource({"iorcreate", "iovcreate"})
  void memoryOfARingThatWasRefusedServesTheNextOne(String call) throws Exception {
    open(16, 0, MIB, PATIENCE);
    long iovs = hf3fs.count("iovs");
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    MemorySegment source = bytes(PAGE);
    RingQueue secondQueue = new RingQueue(List.of(point), registered, config);
    for (RingQueue each : List.of(queue, secondQueue)) {
      // The first of them needs no memory, which is there.
      if (each == secondQueue || call.equals("iorcreate")) {
        hf3fs.fail(call, 1, 1, Errno.EIO);
        assertThatThrownBy(() -> each.write(fd, path, new IoVector().add(source), 0))
            .hasMessageContaining("hf3fs_" + call);
      }
      each.write(fd, path, new IoVector().add(source), 0);
      assertThat(each.await()).isEqualTo(PAGE);
    }
    assertThat(hf3fs.count("iovs")).isEqualTo(iovs + 1);
    files.close(fd, path);
    secondQueue.close();
  }

  @Test
  void registersAFileOnceForAllItsRequests() throws Exception {
    open(16, 0, MIB, PATIENCE);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.create(path);
    MemorySegment source = bytes(PAGE);
    long free = hf3fs.count("registered");
    for (int i = 0; i < 3; i++) {
      queue.write(fd, path, new IoVector().add(source), i * (long) PAGE);
      queue.await();
      assertThat(hf3fs.count("registered")).isEqualTo(free + 1);
    }
    files.close(fd, path);
    assertThat(hf3fs.count("registered")).isEqualTo(free);
  }
}

package ucm.store.ds3fs;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import ucm.api.StoreMetrics;
import ucm.platform.libc.IoVector;
import ucm.platform.libc.LibcFileOperations;
import ucm.platform.libc.NativePath;

/**
 * What requests under way side by side are worth when each takes 0.2 ms: one thread reads and writes a
 * file of 16 MiB in requests of 64 KiB, on rings of 1 and of 64 entries in turn. Run by hand:
 *
 * <pre>mvn -q -pl ucm-store-ds3fs -am test-compile exec:exec@speed</pre>
 */
final class Ds3fsSpeed {

  private static final int ROUNDS = 15;
  private static final long FILE_BYTES = 16 << 20;
  private static final long REQUEST_BYTES = 64 << 10;
  private static final long DELAY_MICROS = 200;
  private static final int DEEP = 64;

  private Ds3fsSpeed() {}

  public static void main(String[] args) throws IOException {
    Path mount = Files.createTempDirectory("ucm-ds3fs-speed").toRealPath();
    SimulatedHf3fs hf3fs = SimulatedHf3fs.load(mount);
    hf3fs.delay(DELAY_MICROS);
    double[][] seconds = new double[4][ROUNDS];
    try {
      for (int round = 0; round < ROUNDS; round++) {
        for (int depth : round % 2 == 0 ? new int[] {1, DEEP} : new int[] {DEEP, 1}) {
          int row = depth == 1 ? 0 : 2;
          time(mount, depth, round, seconds[row], seconds[row + 1]);
        }
      }
      hf3fs.requireNoMisuse();
    } finally {
      try (Stream<Path> all = Files.walk(mount)) {
        all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
      }
    }
    report("write", seconds[0], seconds[2]);
    report("read", seconds[1], seconds[3]);
  }

  private static void time(Path mount, int depth, int round, double[] writes, double[] reads) {
    RingSettings settings = new RingSettings(depth, 0, -1);
    Mount on =
        new Mount(
            mount.toString(),
            List.of(mount.toString()),
            settings,
            1,
            64 << 20,
            64 << 20,
            RingMetrics.of(StoreMetrics.NONE));
    RegisteredFiles registered = new RegisteredFiles();
    registered.on(List.of(on));
    Ds3fsFiles files = new Ds3fsFiles(new LibcFileOperations(), registered);
    RingQueue queue = new RingQueue(List.of(on), registered, depth, 30_000_000_000L);
    NativePath path = NativePath.of(mount.resolve("file").toString());
    int fd = files.openWrite(path);
    if (fd < 0) {
      fd = files.create(path);
    }
    try (Arena arena = Arena.ofShared()) {
      IoVector[] vectors = new IoVector[(int) (FILE_BYTES / REQUEST_BYTES)];
      MemorySegment memory = arena.allocate(FILE_BYTES);
      long start = System.nanoTime();
      run(queue, fd, path, fill(vectors, memory), true);
      long middle = System.nanoTime();
      run(queue, fd, path, fill(vectors, memory), false);
      writes[round] = (middle - start) / 1e9;
      reads[round] = (System.nanoTime() - middle) / 1e9;
    } finally {
      files.close(fd, path);
      queue.close();
      on.close();
    }
  }

  private static IoVector[] fill(IoVector[] vectors, MemorySegment memory) {
    Arrays.setAll(
        vectors, i -> new IoVector().add(memory.asSlice(i * REQUEST_BYTES, REQUEST_BYTES)));
    return vectors;
  }

  private static void run(
      RingQueue queue, int fd, NativePath path, IoVector[] vectors, boolean isWrite) {
    int awaited = 0;
    for (int i = 0; i < vectors.length; i++) {
      if (i - awaited == queue.depth()) {
        queue.await();
        awaited++;
      }
      if (isWrite) {
        queue.write(fd, path, vectors[i], i * REQUEST_BYTES);
      } else {
        queue.read(fd, path, vectors[i], i * REQUEST_BYTES);
      }
    }
    for (; awaited < vectors.length; awaited++) {
      queue.await();
    }
  }

  private static void report(String what, double[] one, double[] deep) {
    double[] ratios = new double[one.length];
    Arrays.setAll(ratios, i -> one[i] / deep[i]);
    System.out.printf(
        "%-5s  depth 1: %6.1f MB/s   depth %d: %7.1f MB/s   times as fast: %.1f (%.1f - %.1f)%n",
        what,
        FILE_BYTES / median(one) / 1e6,
        DEEP,
        FILE_BYTES / median(deep) / 1e6,
        median(ratios),
        Arrays.stream(ratios).min().orElseThrow(),
        Arrays.stream(ratios).max().orElseThrow());
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}

package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.store.s3.block.ObjectFormat;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;

/**
 * Bodies do not cross the heap. With {@code -Ducm.rounds=3}, prints how the store compares with its transport
 * alone, on one server, 16 requests at once, in turns, plain and by TLS; times are not judged, as they are the
 * machine's.
 */
final class S3AllocationTest {

  private static final int AT_ONCE = 16;
  // Of the largest blocks; as many bytes of smaller ones.
  private static final int ROUNDS = Integer.getInteger("ucm.rounds", 1);
  private static final boolean COMPARES = System.getProperty("ucm.rounds") != null;
  private static final long LARGEST = 16L << 20;
  private static final double MOST_HEAP = 0.02;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  @TempDir private static Path folder;
  private static TlsFiles tls;

  private interface Job {
    void run() throws Exception;
  }

  /** What a job took: seconds, seconds of all processors, and bytes of heap. */
  private record Taken(double seconds, double cpu, double heap) {

    static Taken of(Job job) throws Exception {
      long heap = THREADS.getTotalThreadAllocatedBytes();
      long cpu = SYSTEM.getProcessCpuTime();
      long start = System.nanoTime();
      job.run();
      return new Taken(
          (System.nanoTime() - start) / 1e9,
          (SYSTEM.getProcessCpuTime() - cpu) / 1e9,
          THREADS.getTotalThreadAllocatedBytes() - heap);
    }
  }

  @BeforeAll
  static void makesKeys() throws Exception {
    VersityGateway.require();
    tls = TlsFiles.make(folder, "server");
  }

  /** The mean, as the clock of a process is too coarse for one round. */
  private static double cpu(List<Taken> taken) {
    return taken.stream().mapToDouble(Taken::cpu).average().orElseThrow();
  }

  private static double median(List<Taken> taken, ToDoubleFunction<Taken> of) {
    List<Double> sorted = new ArrayList<>(taken.stream().map(of::applyAsDouble).toList());
    Collections.sort(sorted);
    return sorted.get(sorted.size() / 2);
  }

  /**
   * Runs the second, and the first in turns with it where they are compared, after as often for nothing, so
   * that both are compiled.
   *
   * @return the heap bytes that the second needs for a byte moved
   */
  private static double compare(String what, long bytes, Job before, Job raw, Job own)
      throws Exception {
    List<Taken> raws = new ArrayList<>();
    List<Taken> owns = new ArrayList<>();
    int rounds = (int) (ROUNDS * LARGEST * AT_ONCE / bytes);
    for (int round = 0; round < 2 * rounds; round++) {
      before.run();
      boolean rawFirst = COMPARES && round % 2 == 0;
      Taken first = Taken.of(rawFirst ? raw : own);
      Taken second = COMPARES ? Taken.of(rawFirst ? own : raw) : first;
      if (round >= rounds) {
        raws.add(rawFirst ? first : second);
        owns.add(rawFirst ? second : first);
      }
    }
    double heap = median(owns, Taken::heap) / bytes;
    if (!COMPARES) {
      return heap;
    }
    double gib = bytes / (double) (1 << 30);
    double rawSeconds = median(raws, Taken::seconds);
    double ownSeconds = median(owns, Taken::seconds);
    System.out.printf(
        "%-22s raw %5.2f GiB/s, store %5.2f GiB/s: %4.2f of raw; CPU %4.2f and %4.2f s/GiB;"
            + " heap %.4f of a byte%n",
        what,
        gib / rawSeconds,
        gib / ownSeconds,
        rawSeconds / ownSeconds,
        cpu(raws) / gib,
        cpu(owns) / gib,
        heap);
    return heap;
  }

  @ParameterizedTest
  @CsvSource({"1, false", "4, false", "16, false", "4, true", "16, true"})
  void movesBodiesOutsideTheHeap(int mebibytes, boolean secure) throws Exception {
    String name = (secure ? "tls" : "plain") + mebibytes;
    Path files = folder.resolve(name);
    try (VersityGateway gateway =
        secure ? VersityGateway.start(files, tls) : VersityGateway.start(files)) {
      Map<String, Object> settings = new HashMap<>(gateway.settings("ucm"));
      settings.put("s3_known_s", 0);
      settings.put("s3_first_byte_ms", 60_000);
      if (secure) {
        settings.put("s3_ca_file", tls.certificate().toString());
      }
      compare(settings, (long) mebibytes << 20, " " + mebibytes + " MiB" + (secure ? " TLS" : ""));
    }
  }

  private static void compare(Map<String, Object> settings, long size, String of) throws Exception {
    long bytes = AT_ONCE * size;
    BlockLayout layout = BlockLayout.uniform(size, size, size);
    BlockIds ids = BlockBytes.ids(size, AT_ONCE);
    ObjectFormat format = new ObjectFormat(layout, "ucm");
    try (RawObjects raw = new RawObjects(settings, Optional.of(layout));
        StoreFixture stores = new StoreFixture(layout);
        Arena arena = Arena.ofShared()) {
      Store store = stores.open(new S3Store(), settings);
      TransferMemory memory = TransferMemory.ofBlocks(layout, TransferMemory.Placement.PACKED, ids);
      memory.fill();
      List<MemorySegment> into =
          IntStream.range(0, AT_ONCE).mapToObj(_ -> arena.allocate(size)).toList();
      double dumped =
          compare(
              "put, dump" + of,
              bytes,
              () -> {
                store.remove(ids);
                all(raw, i -> ObjectRequest.delete("raw/" + i));
              },
              () -> all(raw, i -> put("raw/" + i, into.get(i))),
              () -> StoreFixture.ended(store.dump(memory.transfer())).requireOk());
      double loaded =
          compare(
              "get, load" + of,
              bytes,
              () -> {},
              () -> all(raw, i -> get(format.key(ids.high(i), ids.low(i)), into.get(i))),
              () -> StoreFixture.ended(store.load(memory.transfer())).requireOk());
      assertThat(loaded).as("heap of a load").isLessThan(MOST_HEAP);
      assertThat(dumped).as("heap of a dump").isLessThan(MOST_HEAP);
    }
  }

  private interface Made {
    ObjectRequest request(int i);
  }

  private static void all(RawObjects raw, Made made) {
    List<CompletableFuture<ObjectReply>> replies =
        IntStream.range(0, AT_ONCE)
            .mapToObj(i -> raw.client.send(made.request(i), TimeUnit.MINUTES.toNanos(1)))
            .toList();
    replies.forEach(
        reply -> assertThat(reply.join()).matches(it -> it.ok() || it.isMissing(), "done"));
  }

  private static ObjectRequest put(String key, MemorySegment body) {
    return ObjectRequest.put(
        key,
        Map.of(),
        (offset, to) -> {
          int step = (int) Math.min(to.remaining(), body.byteSize() - offset);
          to.put(body.asSlice(offset, step).asByteBuffer());
        },
        body.byteSize());
  }

  private static ObjectRequest get(String key, MemorySegment into) {
    ByteBuffer target = into.asByteBuffer();
    return ObjectRequest.get(key, 0, into.byteSize(), target::put);
  }
}

package ucm.store.s3;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.config.StoreConfig;
import ucm.store.s3.client.ClientSettings;
import ucm.store.s3.client.CrtObjectClient;
import ucm.store.s3.client.ObjectClient;
import ucm.store.s3.client.ObjectReply;
import ucm.store.s3.client.ObjectRequest;
import ucm.testkit.BlockBytes;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;

/**
 * Bodies do not cross the heap. Beside that, prints how the store compares with its transport alone, on one
 * server, 16 requests at once; times are not judged, as they are the machine's.
 */
final class S3AllocationTest {

  private static final int AT_ONCE = 16;
  private static final int ROUNDS = 4;
  private static final double MOST_HEAP = 0.02;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  @TempDir private static Path folder;
  @AutoClose private static VersityGateway gateway;

  private interface Job {
    void run() throws Exception;
  }

  @BeforeAll
  static void startsTheServer() throws Exception {
    VersityGateway.require();
    gateway = VersityGateway.start(folder);
  }

  /** Runs a job some times after once for nothing, and returns heap bytes for each byte moved. */
  private static double measure(String what, long bytes, Job job) throws Exception {
    job.run();
    long heap = THREADS.getTotalThreadAllocatedBytes();
    long cpu = SYSTEM.getProcessCpuTime();
    long start = System.nanoTime();
    for (int i = 0; i < ROUNDS; i++) {
      job.run();
    }
    double gib = (double) ROUNDS * bytes / (1 << 30);
    double seconds = (System.nanoTime() - start) / 1e9;
    double perByte = (THREADS.getTotalThreadAllocatedBytes() - heap) / ((double) ROUNDS * bytes);
    System.out.printf(
        "%-24s %6.2f GiB/s  %5.2f CPU s/GiB  %.4f heap bytes a byte%n",
        what, gib / seconds, (SYSTEM.getProcessCpuTime() - cpu) / 1e9 / gib, perByte);
    return perByte;
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 16})
  void movesBodiesOutsideTheHeap(int mebibytes) throws Exception {
    long size = (long) mebibytes << 20;
    long bytes = AT_ONCE * size;
    BlockLayout layout = BlockLayout.uniform(size, size, size);
    BlockIds ids = BlockBytes.ids(mebibytes, AT_ONCE);
    ClientSettings settings =
        S3Config.client(StoreConfig.of(gateway.settings("raw")), Optional.of(layout)).orElseThrow();
    ObjectClient raw =
        new CrtObjectClient(settings, Thread.ofPlatform().daemon().factory(), System::nanoTime);
    try (StoreFixture stores = new StoreFixture(layout);
        Arena arena = Arena.ofShared()) {
      Map<String, Object> own = new HashMap<>(gateway.settings("blocks" + mebibytes));
      own.put("s3_known_s", 0);
      Store store = stores.open(new S3Store(), own);
      TransferMemory memory = TransferMemory.ofBlocks(layout, TransferMemory.Placement.PACKED, ids);
      memory.fill();
      MemorySegment body = arena.allocate(size);
      List<MemorySegment> into =
          IntStream.range(0, AT_ONCE).mapToObj(_ -> arena.allocate(size)).toList();
      String of = " " + mebibytes + " MiB";
      measure("raw put" + of, bytes, () -> all(raw, i -> put("raw/" + i, body)));
      double dumped =
          measure(
              "dump" + of,
              bytes,
              () -> {
                store.remove(ids);
                StoreFixture.ended(store.dump(memory.transfer())).requireOk();
              });
      measure("raw get" + of, bytes, () -> all(raw, i -> get("raw/" + i, into.get(i))));
      double loaded =
          measure(
              "load" + of,
              bytes,
              () -> StoreFixture.ended(store.load(memory.transfer())).requireOk());
      assertThat(loaded).as("heap of a load").isLessThan(MOST_HEAP);
      assertThat(dumped).as("heap of a dump").isLessThan(MOST_HEAP);
    } finally {
      raw.close(Duration.ofSeconds(5));
    }
  }

  private interface Made {
    ObjectRequest request(int i);
  }

  private static void all(ObjectClient client, Made made) {
    List<CompletableFuture<ObjectReply>> replies =
        IntStream.range(0, AT_ONCE)
            .mapToObj(i -> client.send(made.request(i), TimeUnit.MINUTES.toNanos(1)))
            .toList();
    replies.forEach(reply -> assertThat(reply.join().ok()).isTrue());
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

package ucm.bench.store;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.WrongBytesException;
import ucm.device.Device;
import ucm.device.DeviceStream;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/**
 * Moves the memory of a GPU through the pool of a Cache store, and plainly beside it.
 *
 * <p>A round: a pattern in pinned host memory is copied to the device, plainly; the Cache dumps it into
 * its pool; it is copied back, plainly; the Cache loads it to another place on the device; from there it
 * is fetched, and every byte is compared. Plain copies are one stream of the driver and pinned memory of
 * its own, a call for each segment, all queued before the first wait. In every other round they come after
 * the Cache's.
 *
 * <p>Owned and run by one thread, which is the stream's.
 */
public final class GpuBench implements AutoCloseable {

  private static final double GIB = 1L << 30;
  // A segment of the engine's memory is followed by memory that is another block's.
  private static final long GAP_BYTES = 4096;
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  private final Device device;
  private final DeviceStream stream;
  private final StoreCatalog catalog;
  private final int streams;
  private final BenchIds ids = new BenchIds(System.nanoTime());

  public GpuBench(Device device, StoreCatalog catalog, int streams) {
    this.device = device;
    this.stream = device.stream(1);
    this.catalog = catalog;
    this.streams = streams;
  }

  /** Measures a shape: so many bytes a round. */
  public GpuResult run(GpuShape shape, long bytes, int warmup, int repeat, Progress progress)
      throws InterruptedException {
    int shards = Math.toIntExact(bytes / shape.shardBytes());
    long stride = shape.segmentBytes() + (shape.segments() == 1 ? 0 : GAP_BYTES);
    long onDevice = stride * shards * shape.segments();
    List<MemoryRegion> owned = new ArrayList<>();
    try (Pipeline cache = open(shape, shards)) {
      MemoryRegion source = own(owned, device.allocate(onDevice));
      MemoryRegion target = own(owned, device.allocate(onDevice));
      MemoryRegion host = own(owned, device.allocatePinned(shards * shape.shardBytes()));
      MemoryRegion back = own(owned, device.allocatePinned(shards * shape.shardBytes()));
      BenchMeasure down = new BenchMeasure("host to device", "GB/s", "plain pinned copy");
      BenchMeasure up = new BenchMeasure("device to host", "GB/s", "plain pinned copy");
      double[] calls = new double[repeat];
      for (int round = 0; round < warmup + repeat; round++) {
        progress.at(round);
        boolean first = round % 2 == 0;
        fill(host.segment(), round);
        BlockIds blocks = ids.next(shards);
        Transfer dump = transfer(shape, blocks, source, stride);
        Transfer load = transfer(shape, blocks, target, stride);
        Plain plainDown = plain(shape, host, source, stride);
        Plain plainUp = first ? plain(shape, source, back, stride) : null;
        long start = System.nanoTime();
        cache.dump(dump).await(PATIENCE).requireOk();
        long dumped = System.nanoTime() - start;
        plainUp = plainUp == null ? plain(shape, source, back, stride) : plainUp;
        // A second time, so that there is one beside each load; the bytes are the same.
        Plain beside = first ? plain(shape, host, source, stride) : null;
        start = System.nanoTime();
        cache.load(load).await(PATIENCE).requireOk();
        long loaded = System.nanoTime() - start;
        beside = beside == null ? plain(shape, host, source, stride) : beside;
        back.segment().fill((byte) 0);
        plain(shape, target, back, stride);
        verify(shape, host.segment(), back.segment());
        if (round >= warmup) {
          double moved = shards * shape.shardBytes();
          up.add(moved / dumped, moved / plainUp.nanos);
          down.add(moved / loaded, moved / beside.nanos);
          calls[round - warmup] = plainDown.queueing / 1e3 / (shards * shape.segments());
        }
      }
      return new GpuResult(shape, down, up, Spread.of(calls));
    } finally {
      owned.forEach(device::free);
    }
  }

  /** What plain copies took: all of them, and until the last was queued. */
  private record Plain(long nanos, long queueing) {}

  private Plain plain(GpuShape shape, MemoryRegion from, MemoryRegion to, long stride) {
    boolean down = from.isHost();
    MemoryRegion host = down ? from : to;
    long size = shape.segmentBytes();
    long count = host.byteSize() / size;
    long start = System.nanoTime();
    for (long i = 0; i < count; i++) {
      stream.copy(from, i * (down ? size : stride), to, i * (down ? stride : size), size);
    }
    long queued = System.nanoTime();
    stream.awaitAll();
    return new Plain(System.nanoTime() - start, queued - start);
  }

  private static Transfer transfer(
      GpuShape shape, BlockIds blocks, MemoryRegion memory, long stride) {
    Transfer.Builder builder = Transfer.scattered(shape.layout());
    for (int shard = 0; shard < blocks.size(); shard++) {
      builder.shard(blocks, shard, 0);
      for (int segment = 0; segment < shape.segments(); segment++) {
        builder.piece(memory, ((long) shard * shape.segments() + segment) * stride);
      }
    }
    return builder.build();
  }

  private static void fill(MemorySegment memory, int round) {
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      memory.set(ValueLayout.JAVA_LONG, at, (at + round) * 0x9E3779B97F4A7C15L);
    }
  }

  private static void verify(GpuShape shape, MemorySegment expected, MemorySegment found) {
    long wrong = expected.mismatch(found);
    if (wrong >= 0) {
      throw new WrongBytesException(
          String.format(
              "shape %s: byte %s of shard %s came back wrong through the GPU and the pool; nothing"
                  + " else here is to be trusted",
              shape.text(), wrong % shape.shardBytes(), wrong / shape.shardBytes()));
    }
  }

  private Pipeline open(GpuShape shape, int shards) {
    // Room for two rounds, so that dumps evict and never wait.
    double capacity = 2.0 * shards * Math.ceilDiv(shape.shardBytes(), 4096) * 4096 / GIB;
    Map<String, Object> values =
        Map.of(
            "cache_buffer_capacity_gb",
            capacity,
            "cache_device",
            "cuda",
            "cache_stream_number",
            (long) streams,
            "device_id",
            (long) device.info().id());
    return Pipeline.open(
        UcmConfig.of("Cache", Map.of())
            .with(EngineConfig.of(shape.layout()), "engine")
            .with(values, "benchmark"),
        catalog);
  }

  private static MemoryRegion own(List<MemoryRegion> owned, MemoryRegion region) {
    owned.add(region);
    return region;
  }

  @Override
  public void close() {
    stream.close();
  }
}

package ucm.bench.store;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.MemoryRegion;
import ucm.api.Transfer;
import ucm.bench.measure.BenchIds;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
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

  private static final String LIMIT = "plain pinned copy";
  // A segment of the engine's memory is followed by memory that is another block's.
  private static final long GAP_BYTES = 4096;
  private static final Duration PATIENCE = Duration.ofMinutes(2);

  private final Device device;
  private final DeviceStream stream;
  private final StoreCatalog catalog;
  private final int streams;
  private final BenchIds ids = new BenchIds(System.nanoTime());

  /**
   * The memory of a layer, one shard a block.
   *
   * @param shardBytes bytes of a shard
   * @param segmentBytes bytes of each of its segments, which lie apart on the device; a power of two less
   */
  public record Shape(long shardBytes, long segmentBytes) {

    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;

    /** Layers of 64 KiB to 4 MiB in one segment, keys and values apart, and many small segments. */
    public static final List<Shape> ALL =
        List.of(
            new Shape(64 * KIB, 64 * KIB),
            new Shape(256 * KIB, 256 * KIB),
            new Shape(MIB, MIB),
            new Shape(2 * MIB, 2 * MIB),
            new Shape(4 * MIB, 4 * MIB),
            new Shape(128 * KIB, 64 * KIB),
            new Shape(4 * MIB, 2 * MIB),
            new Shape(2 * MIB, 64 * KIB),
            new Shape(2 * MIB, 16 * KIB));

    BlockLayout layout() {
      return BlockLayout.uniform(segmentBytes, shardBytes, shardBytes);
    }

    int segments() {
      return Math.toIntExact(shardBytes / segmentBytes);
    }

    /** From one segment to the next on the device. */
    long stride() {
      return segmentBytes + (segments() == 1 ? 0 : GAP_BYTES);
    }

    /** What people call it. */
    public String text() {
      return segments() == 1
          ? size(shardBytes)
          : "%s in %s x %s".formatted(size(shardBytes), segments(), size(segmentBytes));
    }

    private static String size(long bytes) {
      return bytes >= MIB ? bytes / MIB + " MiB" : bytes / KIB + " KiB";
    }
  }

  /**
   * What one shape came to.
   *
   * @param toDevice loads from the pool, beside plain copies
   * @param toHost dumps into the pool, beside plain copies
   * @param callMicros time until a plain copy was queued
   */
  public record Result(Shape shape, BenchMeasure toDevice, BenchMeasure toHost, Spread callMicros) {

    /** For JSON. */
    public Fields data() {
      return new Fields()
          .with("shard_bytes", shape.shardBytes())
          .with("piece_bytes", shape.segmentBytes())
          .with("measures", List.of(toDevice.data(), toHost.data()))
          .with("queueing_us", callMicros);
    }
  }

  public GpuBench(Device device, StoreCatalog catalog, int streams) {
    this.device = device;
    this.stream = device.stream(1);
    this.catalog = catalog;
    this.streams = streams;
  }

  /** Measures a shape: so many bytes a round. */
  public Result run(Shape shape, long bytes, int warmup, int repeat, Progress progress)
      throws InterruptedException {
    int shards = Math.toIntExact(bytes / shape.shardBytes());
    long onDevice = shape.stride() * shards * shape.segments();
    long moved = shards * shape.shardBytes();
    List<MemoryRegion> owned = new ArrayList<>();
    try (Pipeline cache = open(shape, shards)) {
      MemoryRegion source = own(owned, device.allocate(onDevice));
      MemoryRegion target = own(owned, device.allocate(onDevice));
      MemoryRegion host = own(owned, device.allocatePinned(moved));
      MemoryRegion back = own(owned, device.allocatePinned(moved));
      BenchMeasure down = new BenchMeasure("host to device", "GB/s", LIMIT);
      BenchMeasure up = new BenchMeasure("device to host", "GB/s", LIMIT);
      double[] calls = new double[repeat];
      for (int round = 0; round < warmup + repeat; round++) {
        progress.at(round);
        boolean first = round % 2 == 0;
        fill(host.segment(), round);
        BlockIds blocks = ids.next(shards);
        Transfer dump = transfer(shape, blocks, source);
        Transfer load = transfer(shape, blocks, target);
        Plain plainDown = plain(shape, host, source);
        Plain plainUp = first ? plain(shape, source, back) : null;
        long start = System.nanoTime();
        cache.dump(dump).await(PATIENCE).requireOk();
        long dumped = System.nanoTime() - start;
        plainUp = plainUp == null ? plain(shape, source, back) : plainUp;
        // A second time, so that there is one beside each load; the bytes are the same.
        Plain beside = first ? plain(shape, host, source) : null;
        start = System.nanoTime();
        cache.load(load).await(PATIENCE).requireOk();
        long loaded = System.nanoTime() - start;
        beside = beside == null ? plain(shape, host, source) : beside;
        back.segment().fill((byte) 0);
        plain(shape, target, back);
        verify(shape, host.segment(), back.segment());
        if (round >= warmup) {
          up.add((double) moved / dumped, (double) moved / plainUp.nanos);
          down.add((double) moved / loaded, (double) moved / beside.nanos);
          calls[round - warmup] = plainDown.queueing / 1e3 / (shards * shape.segments());
        }
      }
      return new Result(shape, down, up, Spread.of(calls));
    } finally {
      owned.forEach(device::free);
    }
  }

  /** What plain copies took: all of them, and until the last was queued. */
  private record Plain(long nanos, long queueing) {}

  private Plain plain(Shape shape, MemoryRegion from, MemoryRegion to) {
    boolean down = from.isHost();
    MemoryRegion host = down ? from : to;
    long size = shape.segmentBytes();
    long stride = shape.stride();
    long count = host.byteSize() / size;
    long start = System.nanoTime();
    for (long i = 0; i < count; i++) {
      stream.copy(from, i * (down ? size : stride), to, i * (down ? stride : size), size);
    }
    long queued = System.nanoTime();
    stream.awaitAll();
    return new Plain(System.nanoTime() - start, queued - start);
  }

  private static Transfer transfer(Shape shape, BlockIds blocks, MemoryRegion memory) {
    Transfer.Builder builder = Transfer.scattered(shape.layout());
    for (int shard = 0; shard < blocks.size(); shard++) {
      builder.shard(blocks, shard, 0);
      for (int segment = 0; segment < shape.segments(); segment++) {
        builder.piece(memory, ((long) shard * shape.segments() + segment) * shape.stride());
      }
    }
    return builder.build();
  }

  private static void fill(MemorySegment memory, int round) {
    for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
      memory.set(ValueLayout.JAVA_LONG, at, (at + round) * 0x9E3779B97F4A7C15L);
    }
  }

  private static void verify(Shape shape, MemorySegment expected, MemorySegment found) {
    long wrong = expected.mismatch(found);
    if (wrong >= 0) {
      throw new WrongBytesException(
          String.format(
              "shape %s: byte %s of shard %s came back wrong through the GPU and the pool; nothing"
                  + " else here is to be trusted",
              shape.text(), wrong % shape.shardBytes(), wrong / shape.shardBytes()));
    }
  }

  private Pipeline open(Shape shape, int shards) {
    // Room for two rounds, so that dumps evict and never wait.
    double capacity = 2.0 * shards * Math.ceilDiv(shape.shardBytes(), 4096) * 4096 / Figures.GIB;
    Fields values =
        new Fields()
            .with("cache_buffer_capacity_gb", capacity)
            .with("cache_device", "cuda")
            .with("cache_stream_number", (long) streams)
            .with("device_id", (long) device.info().id());
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

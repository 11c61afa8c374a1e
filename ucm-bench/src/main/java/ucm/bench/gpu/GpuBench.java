package ucm.bench.gpu;

import java.util.ArrayList;
import java.util.List;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.output.Fields;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;
import ucm.device.CopyWay;
import ucm.device.Device;
import ucm.pipeline.catalog.StoreCatalog;

/**
 * Moves the memory of a GPU by each way, in each direction and in both at once. Beside each figure is one
 * plain pinned copy of as many bytes, or one in each direction, before it in one round and after it in the
 * next. Every byte is compared. Run by one thread.
 *
 * @param streams {@code cache_stream_number} of the pool
 */
public record GpuBench(Device device, StoreCatalog catalog, int streams) {

  private static final String LIMIT = "plain pinned copy";

  /**
   * What one way of one shape came to: GB/s in one direction or the sum of both, and the time until all
   * was handed over, by the segments. The way is {@code pool}, or one of the driver's.
   */
  public record Result(GpuShape shape, String way, BenchMeasure measure, Spread queueingMicros) {

    public Fields data() {
      return new Fields()
          .with("shard_bytes", shape.shardBytes())
          .with("piece_bytes", shape.segmentBytes())
          .with("way", way)
          .with("measure", measure.data())
          .with("queueing_us", queueingMicros);
    }
  }

  private record Series(
      GpuPath path, Direction direction, BenchMeasure measure, List<Double> queueing) {

    Series(GpuPath path, Direction direction) {
      this(path, direction, new BenchMeasure(direction.text, "GB/s", LIMIT), new ArrayList<>());
    }

    Result result(GpuShape shape) {
      double[] micros = queueing.stream().mapToDouble(Double::doubleValue).toArray();
      return new Result(shape, path.name(), measure, Spread.of(micros));
    }
  }

  /** Measures a shape: so many bytes a round and direction. */
  public List<Result> run(GpuShape shape, long bytes, int warmup, int repeat, Progress progress)
      throws InterruptedException {
    List<GpuPath> paths = new ArrayList<>();
    List<Series> found = new ArrayList<>();
    try (GpuMemory memory = new GpuMemory(device, shape, bytes)) {
      try {
        open(paths, memory);
        for (GpuPath path : paths) {
          for (Direction direction : Direction.values()) {
            found.add(new Series(path, direction));
          }
        }
        for (int round = 0; round < warmup + repeat; round++) {
          progress.at(round);
          memory.fill(round);
          for (Series series : found) {
            measure(series, memory, round, round >= warmup);
          }
        }
      } finally {
        paths.forEach(GpuPath::close);
      }
    }
    return found.stream().map(series -> series.result(shape)).toList();
  }

  private void open(List<GpuPath> paths, GpuMemory memory) {
    paths.add(new PoolPath(memory, catalog, device.info().id(), streams));
    for (CopyWay way : device.copyWays()) {
      paths.add(StreamPath.segments(device, way, memory));
    }
    if (memory.shape.segments() > 1) {
      paths.add(StreamPath.rows(device, memory));
    }
  }

  private static void measure(Series series, GpuMemory memory, int round, boolean counts)
      throws InterruptedException {
    GpuPath path = series.path;
    Direction direction = series.direction;
    boolean first = round % 2 == 0;
    long plain = first ? memory.plain(direction) : 0;
    long start = System.nanoTime();
    path.begin(direction);
    long queued = System.nanoTime();
    path.await();
    long end = System.nanoTime();
    plain = first ? plain : memory.plain(direction);
    path.verify(direction);
    if (counts) {
      double moved = memory.byteSize() * (direction == Direction.BOTH ? 2.0 : 1.0);
      series.measure.add(moved / (end - start), moved / plain);
      series.queueing.add((queued - start) / 1e3 / memory.segments());
    }
  }
}

package ucm.bench.store;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.bench.measure.BenchMeasure;
import ucm.cli.output.Spread;

/**
 * What one shape came to.
 *
 * @param toDevice loads from the pool, beside plain copies
 * @param toHost dumps into the pool, beside plain copies
 * @param callMicros time until a plain copy was queued
 */
public record GpuResult(
    GpuShape shape, BenchMeasure toDevice, BenchMeasure toHost, Spread callMicros) {

  /** For JSON. */
  public Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("shard_bytes", shape.shardBytes());
    data.put("piece_bytes", shape.segmentBytes());
    data.put("measures", List.of(toDevice.data(), toHost.data()));
    data.put("queueing_us", callMicros.data());
    return data;
  }
}

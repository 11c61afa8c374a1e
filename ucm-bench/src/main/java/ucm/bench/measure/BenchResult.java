package ucm.bench.measure;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a benchmark of one pipeline with one shape of blocks found.
 *
 * @param fio what fio found, or null when it is not installed
 */
public record BenchResult(
    BenchPlan plan,
    List<BenchMeasure> measures,
    List<BenchCalls> calls,
    BenchLife life,
    @Nullable FioResult fio) {

  /** For JSON. */
  Map<String, Object> data() {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("pipeline", plan.config().pipeline().toString());
    data.put("io_direct", plan.direct());
    data.put("block_bytes", plan.layout().blockSize());
    data.put("shard_bytes", plan.layout().shardSize());
    data.put("tensor_bytes", plan.layout().tensorSize(0));
    data.put("blocks", plan.blocks());
    data.put("task_blocks", plan.taskBlocks());
    data.put("layerwise", plan.layerwise());
    data.put("in_flight", plan.inFlight());
    data.put("lookups", plan.lookups());
    data.put("repeat", plan.repeat());
    data.put("warmup", plan.warmup());
    data.put("limit_threads", plan.threads());
    data.put("measures", measures.stream().map(BenchMeasure::data).toList());
    data.put("calls", calls.stream().map(BenchCalls::data).toList());
    data.put("life", life.data());
    if (fio != null) {
      data.put("fio", fio.data());
    }
    return data;
  }
}

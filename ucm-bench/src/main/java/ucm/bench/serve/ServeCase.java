package ucm.bench.serve;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import ucm.bench.simulator.ServeResult;
import ucm.cli.output.Spread;

/**
 * A line of the table: some requests of one length at once.
 *
 * @param tokens of each prompt
 * @param concurrency how many requests
 * @param full without UCM
 * @param hits with UCM and part of each prompt stored; a run each time it was repeated
 */
public record ServeCase(int tokens, int concurrency, ServeResult full, List<ServeResult> hits) {

  double fullMillis() {
    return full.meanTtftMillis();
  }

  Spread hitMillis() {
    return Spread.of(hits.stream().mapToDouble(ServeResult::meanTtftMillis).toArray());
  }

  /** How much sooner the first token comes: 1 is twice as soon. */
  double speedup() {
    return fullMillis() / hitMillis().median() - 1;
  }

  /** Tokens that were found outside, as a share of all prompts. */
  double hitRate() {
    return hits.stream()
        .mapToDouble(run -> (double) run.externalTokens() / run.promptTokens())
        .average()
        .orElse(0);
  }

  int preemptions() {
    return hits.stream().mapToInt(ServeResult::preemptions).sum();
  }

  long loadedBlocks() {
    return hits.stream().mapToLong(ServeResult::loadedBlocks).sum();
  }

  long failedBlocks() {
    return hits.stream().mapToLong(ServeResult::failedBlocks).sum();
  }

  /** For JSON. */
  Map<String, Object> data(long blockBytes) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("input_tokens", tokens);
    data.put("concurrency", concurrency);
    data.put("full_compute_ttft_ms", fullMillis());
    data.put("hits_ttft_ms", hitMillis().data());
    data.put("speedup", speedup());
    data.put("external_hit_rate", hitRate());
    data.put("loaded_bytes", loadedBlocks() * blockBytes);
    data.put("load_failed_blocks", failedBlocks());
    data.put("saved_blocks", hits.stream().mapToLong(ServeResult::savedBlocks).sum());
    data.put("preemptions", preemptions());
    data.put("full_compute_preemptions", full.preemptions());
    data.put("steps", hits.getFirst().steps());
    data.put("most_requests_in_a_step", hits.getFirst().mostRequests());
    return data;
  }
}

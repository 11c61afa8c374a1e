package ucm.cli.capacity;

import java.util.Locale;
import java.util.Optional;

/**
 * What a simulation suggests.
 *
 * @param workers processes of a machine: each has a part of its DRAM
 * @param cluster the tiers that were simulated
 * @param kneeBytes the capacity from which on more of it brings less than its share
 * @param breakEvenTokens the shortest prefix that is loaded faster than it is computed; -1 when none
 *     is; empty when no rate of computing was given
 */
record Advice(int workers, ClusterOptions cluster, long kneeBytes, Optional<Long> breakEvenTokens) {

  private static final double GIB = 1 << 30;

  /** A configuration of the stores with the simulated sizes; the folder is to be filled in. */
  String yaml() {
    boolean dram = cluster.dram().bytes() > 0;
    boolean storage = cluster.storage().bytes() > 0;
    StringBuilder yaml = new StringBuilder();
    // The connector loads when the hit exceeds the threshold, so one token less is the last
    // refusal.
    breakEvenTokens
        .filter(tokens -> tokens > 1)
        .ifPresent(tokens -> yaml.append("load_tokens_threshold: " + (tokens - 1) + "\n"));
    yaml.append("ucm_connectors:\n");
    yaml.append("  - ucm_connector_name: \"UcmPipelineStore\"\n");
    yaml.append("    ucm_connector_config:\n");
    yaml.append("      store_pipeline: \"")
        .append(dram ? (storage ? "Cache|Posix" : "Cache|Empty") : "Posix")
        .append("\"\n");
    if (storage || !dram) {
      yaml.append("      storage_backends: \"/mnt/ucm\"\n");
    }
    if (dram) {
      yaml.append(
          "      # " + gib(cluster.dram().bytes()) + " GiB a machine, for each worker process:\n");
      yaml.append("      cache_buffer_capacity_gb: ")
          .append(gib(cluster.dram().bytes() / workers))
          .append('\n');
    }
    if (storage) {
      yaml.append("      posix_capacity_gb: " + gib(cluster.storage().bytes()) + "\n");
    }
    return yaml.toString();
  }

  private static String gib(double bytes) {
    return String.format(Locale.ROOT, "%.1f", Math.max(0.1, bytes / GIB));
  }
}

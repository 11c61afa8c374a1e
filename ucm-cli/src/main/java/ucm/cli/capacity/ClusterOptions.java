package ucm.cli.capacity;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Option;
import ucm.cli.output.ByteSize;
import ucm.cli.output.Figures;
import ucm.cli.output.UsageException;
import ucm.lite.tier.Routing;
import ucm.lite.tier.TierPlan;
import ucm.lite.tier.WritePolicy;

/** The cluster whose tiers are simulated. */
final class ClusterOptions {

  private static final Map<String, WritePolicy> WRITES =
      Map.of("through", WritePolicy.WRITE_THROUGH, "on-eviction", WritePolicy.ON_EVICTION);
  private static final Map<String, Routing> ROUTINGS =
      Map.of(
          "round-robin", Routing.ROUND_ROBIN,
          "session", Routing.SESSION,
          "prefix", Routing.PREFIX);

  @Option(names = "--nodes", paramLabel = "N", description = "machines (default: ${DEFAULT-VALUE})")
  private int nodes = 1;

  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "data-parallel engines on each machine (default: ${DEFAULT-VALUE})")
  private int ranks = 1;

  @Option(
      names = "--hbm",
      paramLabel = "SIZE",
      description = "KV cache in the HBM of one engine, all its GPUs together, such as 40GB")
  private ByteSize hbm = new ByteSize(0);

  @Option(
      names = "--dram",
      paramLabel = "SIZE",
      description = "KV cache in the DRAM of one machine, such as 512GB")
  ByteSize dram = new ByteSize(0);

  @Option(
      names = "--disk",
      paramLabel = "SIZE",
      description =
          "KV cache on the local disks of one machine, before --storage, as Cache|Posix|Nfs has it")
  ByteSize disk = new ByteSize(0);

  @Option(
      names = "--storage",
      paramLabel = "SIZE",
      description =
          "KV cache in storage, such as 7.68TB: of all machines together, or with"
              + " --local-storage of each")
  ByteSize storage = new ByteSize(0);

  @Option(
      names = "--shared-dram",
      description = "the DRAM of all machines is one pool (default: each machine its own)")
  private boolean sharedDram;

  @Option(
      names = "--local-storage",
      description = "each machine has storage of its own (default: one for all)")
  private boolean localStorage;

  @Option(
      names = "--write",
      paramLabel = "WHEN",
      description =
          "blocks go to DRAM, disks and storage when computed (through) or when the tier above"
              + " evicts them (on-eviction) (default: ${DEFAULT-VALUE})")
  private String write = "through";

  @Option(
      names = "--routing",
      paramLabel = "HOW",
      description =
          "how engines are chosen: round-robin, session, or prefix (default: ${DEFAULT-VALUE})")
  private String routing = "round-robin";

  TierPlan plan(long blockBytes) {
    WritePolicy writes = WRITES.get(write.toLowerCase(Locale.ROOT));
    Routing routes = ROUTINGS.get(routing.toLowerCase(Locale.ROOT));
    if (writes == null) {
      throw new UsageException("--write is through or on-eviction; found " + write);
    }
    if (routes == null) {
      throw new UsageException("--routing is round-robin, session or prefix; found " + routing);
    }
    return UsageException.accepted(
        () ->
            new TierPlan(
                nodes,
                ranks,
                hbm.blocks(blockBytes),
                dram.blocks(blockBytes),
                sharedDram,
                disk.blocks(blockBytes),
                storage.blocks(blockBytes),
                !localStorage,
                writes,
                routes));
  }

  /**
   * A configuration of the stores with these sizes; the folders are to be filled in.
   *
   * @param workers processes of a machine: each has a part of its DRAM
   * @param breakEven the shortest prefix that is loaded faster than it is computed, where one is known
   */
  String yaml(int workers, Optional<Long> breakEven) {
    boolean hasDram = dram.bytes() > 0;
    boolean hasDisk = disk.bytes() > 0;
    boolean hasStorage = storage.bytes() > 0;
    boolean hasBoth = hasDisk && hasStorage;
    boolean hasFiles = hasDisk || hasStorage || !hasDram;
    String below = hasBoth ? "Posix|Nfs" : hasFiles ? "Posix" : "Empty";
    List<String> keys = new ArrayList<>();
    keys.add("store_pipeline: \"" + (hasDram ? "Cache|" + below : below) + "\"");
    if (hasBoth) {
      keys.add("posix_storage_backends: \"/mnt/local\"");
    }
    if (hasFiles) {
      keys.add("storage_backends: \"/mnt/ucm\"");
    }
    if (hasDram) {
      keys.add("# " + gib(dram.bytes()) + " GiB a machine, for each worker process:");
      keys.add("cache_buffer_capacity_gb: " + gib(dram.bytes() / workers));
    }
    if (hasDisk) {
      keys.add("posix_capacity_gb: " + gib(disk.bytes()));
    }
    if (hasStorage) {
      keys.add((hasBoth ? "nfs" : "posix") + "_capacity_gb: " + gib(storage.bytes()));
    }
    // The connector loads when the hit exceeds the threshold, so one token less is the last
    // refusal.
    String threshold =
        breakEven
            .filter(tokens -> tokens > 1)
            .map(tokens -> "load_tokens_threshold: " + (tokens - 1) + "\n")
            .orElse("");
    return threshold
        + """
        ucm_connectors:
          - ucm_connector_name: "UcmPipelineStore"
            ucm_connector_config:
        """
        + String.join("\n", keys).indent(6);
  }

  private static String gib(double bytes) {
    return String.format(Locale.ROOT, "%.1f", Math.max(0.1, bytes / Figures.GIB));
  }
}

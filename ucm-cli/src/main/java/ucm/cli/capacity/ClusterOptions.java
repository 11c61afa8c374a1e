package ucm.cli.capacity;

import java.util.Locale;
import picocli.CommandLine.Option;
import ucm.cli.output.ByteSize;
import ucm.cli.output.UsageException;
import ucm.lite.tier.Routing;
import ucm.lite.tier.TierPlan;
import ucm.lite.tier.WritePolicy;

/** The cluster whose tiers are simulated. */
final class ClusterOptions {

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
      defaultValue = "0",
      converter = ByteSize.Converter.class,
      description = "KV cache in the HBM of one engine, all its GPUs together, such as 40GB")
  private ByteSize hbm = new ByteSize(0);

  @Option(
      names = "--dram",
      paramLabel = "SIZE",
      defaultValue = "0",
      converter = ByteSize.Converter.class,
      description = "KV cache in the DRAM of one machine, such as 512GB")
  private ByteSize dram = new ByteSize(0);

  @Option(
      names = "--storage",
      paramLabel = "SIZE",
      defaultValue = "0",
      converter = ByteSize.Converter.class,
      description =
          "KV cache in storage, such as 7.68TB: of all machines together, or with"
              + " --local-storage of each")
  private ByteSize storage = new ByteSize(0);

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
      defaultValue = "through",
      description =
          "blocks go to DRAM and storage when computed (through) or when the tier above evicts them"
              + " (on-eviction) (default: ${DEFAULT-VALUE})")
  private String write = "through";

  @Option(
      names = "--routing",
      paramLabel = "HOW",
      defaultValue = "round-robin",
      description =
          "how engines are chosen: round-robin, session, or prefix (default: ${DEFAULT-VALUE})")
  private String routing = "round-robin";

  TierPlan plan(long blockBytes) {
    try {
      return new TierPlan(
          nodes,
          ranks,
          hbm.blocks(blockBytes),
          dram.blocks(blockBytes),
          sharedDram,
          storage.blocks(blockBytes),
          !localStorage,
          writePolicy(),
          routing());
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }

  private WritePolicy writePolicy() {
    return switch (write.toLowerCase(Locale.ROOT)) {
      case "through" -> WritePolicy.WRITE_THROUGH;
      case "on-eviction" -> WritePolicy.ON_EVICTION;
      default -> throw new UsageException("--write is through or on-eviction; found " + write);
    };
  }

  private Routing routing() {
    return switch (routing.toLowerCase(Locale.ROOT)) {
      case "round-robin" -> Routing.ROUND_ROBIN;
      case "session" -> Routing.SESSION;
      case "prefix" -> Routing.PREFIX;
      default ->
          throw new UsageException("--routing is round-robin, session or prefix; found " + routing);
    };
  }

  ByteSize dram() {
    return dram;
  }

  ByteSize storage() {
    return storage;
  }

  boolean localStorage() {
    return localStorage;
  }

  int nodes() {
    return nodes;
  }
}

package ucm.cli.capacity;

import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.cli.output.ByteSize;
import ucm.cli.output.UsageException;

/** What GPUs, DRAM and drives cost, in one currency of any name, and what is wanted of them. */
final class PriceOptions {

  @Option(
      names = "--gpu-hour",
      paramLabel = "PRICE",
      description =
          "price of one GPU for an hour, in any currency: prints what serving the trace costs a"
              + " month with and without the tiers (needs --gpu, --tflops or --prefill-rate)")
  @Nullable Double gpuHour;

  @Option(
      names = "--dram-gb-month",
      paramLabel = "PRICE",
      description = "price of a GB of DRAM for a month, in the same currency")
  @Nullable Double dramGbMonth;

  @Option(
      names = "--ssd-gb-month",
      paramLabel = "PRICE",
      description = "price of a GB of storage or local disk for a month, in the same currency")
  @Nullable Double ssdGbMonth;

  @Option(
      names = "--ttft-p90",
      paramLabel = "SECONDS",
      description =
          "with prices: also the cheapest DRAM, disks and storage, up to those given, that bring"
              + " the 90th percentile of the time to first token down to this")
  @Nullable Double ttft;

  @Option(
      names = "--endurance",
      paramLabel = "DWPD",
      description = "drive writes a day that the drives endure; warns when the trace writes more")
  @Nullable Double endurance;

  /** Checks what was given against what else the command was told. */
  void check(ClusterOptions cluster, boolean computes) {
    inRange("--gpu-hour", gpuHour, -1, "0 or more");
    inRange("--dram-gb-month", dramGbMonth, -1, "0 or more");
    inRange("--ssd-gb-month", ssdGbMonth, -1, "0 or more");
    inRange("--ttft-p90", ttft, 0, "above 0");
    inRange("--endurance", endurance, 0, "above 0");
    UsageException.when(
        gpuHour == null && (dramGbMonth != null || ssdGbMonth != null || ttft != null),
        "--dram-gb-month, --ssd-gb-month and --ttft-p90 need --gpu-hour, the price to weigh"
            + " against");
    if (gpuHour != null) {
      UsageException.when(!computes, "--gpu-hour needs --gpu, --tflops or --prefill-rate");
      needed("--dram", cluster.dram, "--dram-gb-month", dramGbMonth);
      needed("--disk", cluster.disk, "--ssd-gb-month", ssdGbMonth);
      needed("--storage", cluster.storage, "--ssd-gb-month", ssdGbMonth);
    }
  }

  boolean given() {
    return gpuHour != null;
  }

  /** A price of these; 0 when it was not given. */
  static double price(@Nullable Double given) {
    return given == null ? 0 : given;
  }

  private static void needed(String tier, ByteSize size, String option, @Nullable Double price) {
    UsageException.when(
        size.bytes() > 0 && price == null, "costs of " + tier + " need its price: give " + option);
  }

  private static void inRange(String option, @Nullable Double value, double above, String range) {
    UsageException.when(
        value != null && !(value > above && value >= 0 && value <= Double.MAX_VALUE),
        option + " is " + range + "; found " + value);
  }
}

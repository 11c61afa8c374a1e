package ucm.cli.capacity;

import java.util.Optional;
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
  private @Nullable Double gpuHour;

  @Option(
      names = "--dram-gb-month",
      paramLabel = "PRICE",
      description = "price of a GB of DRAM for a month, in the same currency")
  private @Nullable Double dramGbMonth;

  @Option(
      names = "--ssd-gb-month",
      paramLabel = "PRICE",
      description = "price of a GB of storage for a month, in the same currency")
  private @Nullable Double ssdGbMonth;

  @Option(
      names = "--ttft-p90",
      paramLabel = "SECONDS",
      description =
          "with prices: also the cheapest DRAM and storage, up to --dram and --storage, that bring"
              + " the 90th percentile of the time to first token down to this")
  private @Nullable Double ttft;

  @Option(
      names = "--endurance",
      paramLabel = "DWPD",
      description = "drive writes a day that the drives endure; warns when the trace writes more")
  private @Nullable Double endurance;

  /** Checks what was given against what else the command was told; empty without prices. */
  Optional<TierPrices> prices(ClusterOptions cluster, boolean computes) {
    atLeastZero("--gpu-hour", gpuHour);
    atLeastZero("--dram-gb-month", dramGbMonth);
    atLeastZero("--ssd-gb-month", ssdGbMonth);
    aboveZero("--ttft-p90", ttft);
    aboveZero("--endurance", endurance);
    if (gpuHour == null) {
      if (dramGbMonth != null || ssdGbMonth != null || ttft != null) {
        throw new UsageException(
            "--dram-gb-month, --ssd-gb-month and --ttft-p90 need --gpu-hour, the price to weigh"
                + " against");
      }
      return Optional.empty();
    }
    UsageException.when(!computes, "--gpu-hour needs --gpu, --tflops or --prefill-rate");
    needed("--dram", cluster.dram(), "--dram-gb-month", dramGbMonth);
    needed("--storage", cluster.storage(), "--ssd-gb-month", ssdGbMonth);
    return Optional.of(
        new TierPrices(
            gpuHour, dramGbMonth == null ? 0 : dramGbMonth, ssdGbMonth == null ? 0 : ssdGbMonth));
  }

  Optional<Double> ttft() {
    return Optional.ofNullable(ttft);
  }

  Optional<Double> endurance() {
    return Optional.ofNullable(endurance);
  }

  private static void needed(String tier, ByteSize size, String option, @Nullable Double price) {
    UsageException.when(
        size.bytes() > 0 && price == null, "costs of " + tier + " need its price: give " + option);
  }

  private static void atLeastZero(String option, @Nullable Double value) {
    UsageException.when(
        value != null && !(value >= 0 && value <= Double.MAX_VALUE),
        option + " is 0 or more; found " + value);
  }

  private static void aboveZero(String option, @Nullable Double value) {
    UsageException.when(
        value != null && !(value > 0 && value <= Double.MAX_VALUE),
        option + " is above 0; found " + value);
  }
}

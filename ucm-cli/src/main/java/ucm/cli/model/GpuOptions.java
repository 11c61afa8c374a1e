package ucm.cli.model;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;
import ucm.cli.output.UsageException;

/** Which GPU computes, and how much of it prefill reaches: for simulated compute. */
public final class GpuOptions {

  private static final double TERA = 1e12;

  /** Peaks as their makers publish them: dense BF16 operations a second, in units of 10^12. */
  private static final Map<String, Double> PEAKS = new LinkedHashMap<>();

  static {
    PEAKS.put("a10", 125.0);
    PEAKS.put("a100", 312.0);
    PEAKS.put("h20", 148.0);
    PEAKS.put("h100", 989.0);
    PEAKS.put("h200", 989.0);
    PEAKS.put("l20", 119.5);
    PEAKS.put("l40s", 362.0);
    PEAKS.put("b200", 2250.0);
  }

  @Option(
      names = "--gpu",
      paramLabel = "NAME",
      description =
          "GPU that simulated compute runs on: a10, a100, h20, h100, h200, l20, l40s, b200")
  private String gpu = "";

  @Option(
      names = "--tflops",
      paramLabel = "N",
      description = "BF16 operations a second of another GPU, in units of 10^12")
  private @Nullable Double tflops;

  @Option(
      names = "--mfu",
      paramLabel = "SHARE",
      description = "share of the GPU's peak that prefill reaches (default: ${DEFAULT-VALUE})")
  private double utilization = 0.5;

  /** Whether a GPU was named or described; refuses that where another rate was given, too. */
  public boolean given(String other, boolean isOtherGiven) {
    int rates = (gpu.isEmpty() ? 0 : 1) + (tflops == null ? 0 : 1) + (isOtherGiven ? 1 : 0);
    UsageException.when(rates > 1, "--gpu, --tflops and " + other + " exclude each other");
    UsageException.when(
        !(utilization > 0 && utilization <= 1),
        "--mfu is above 0 and at most 1; found " + utilization);
    UsageException.when(tflops != null && !(tflops > 0), "--tflops is above 0; found " + tflops);
    return rates > (isOtherGiven ? 1 : 0);
  }

  /** Operations a second that prefill reaches on the GPU, or on another where none was named. */
  public double operationsPerSecond(String otherwise) {
    if (tflops != null) {
      return tflops * TERA * utilization;
    }
    String name = name(otherwise);
    Double peak = PEAKS.get(name);
    if (peak == null) {
      throw new UsageException(
          "no GPU %s is known here; known are %s; for others give --tflops or --prefill-rate"
              .formatted(gpu, String.join(", ", PEAKS.keySet())));
    }
    return peak * TERA * utilization;
  }

  private String name(String otherwise) {
    return (gpu.isEmpty() ? otherwise : gpu).toLowerCase(Locale.ROOT);
  }
}

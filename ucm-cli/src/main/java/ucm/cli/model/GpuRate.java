package ucm.cli.model;

import java.util.Arrays;
import java.util.stream.Collectors;
import ucm.cli.output.UsageException;

/**
 * Peak rates of GPUs as their makers publish them: dense BF16 operations a second, without sparsity.
 */
public enum GpuRate {
  A10("a10", 125),
  A100("a100", 312),
  H20("h20", 148),
  H100("h100", 989),
  H200("h200", 989),
  L20("l20", 119.5),
  L40S("l40s", 362),
  B200("b200", 2250);

  private static final double TERA = 1e12;

  private final String key;
  private final double teraOperations;

  GpuRate(String key, double teraOperations) {
    this.key = key;
    this.teraOperations = teraOperations;
  }

  public double operationsPerSecond() {
    return teraOperations * TERA;
  }

  public static GpuRate of(String name) {
    return Arrays.stream(values())
        .filter(gpu -> gpu.key.equalsIgnoreCase(name))
        .findFirst()
        .orElseThrow(
            () ->
                new UsageException(
                    String.format(
                        "no GPU %s is known here; known are %s; for others give --tflops or"
                            + " --prefill-rate",
                        name, names())));
  }

  static String names() {
    return Arrays.stream(values()).map(gpu -> gpu.key).collect(Collectors.joining(", "));
  }
}

package ucm.lite.curve;

import java.util.Arrays;

/**
 * Counts values that are not negative, in buckets of 1/128 of the value: constant memory.
 */
public final class QuantileHistogram {
  private final double unit;
  private long[] counts = new long[256];
  private long count;
  private double sum;
  private double max;

  /** Creates an empty histogram that tells values apart from about {@code 100 * unit} on. */
  public QuantileHistogram(double unit) {
    this.unit = unit;
  }

  public void add(double value) {
    int bucket = DistanceHistogram.bucket(Math.round(value / unit));
    if (bucket >= counts.length) {
      counts = Arrays.copyOf(counts, bucket + 256);
    }
    counts[bucket]++;
    count++;
    sum += value;
    max = Math.max(max, value);
  }

  public long count() {
    return count;
  }

  /** How many values are at most this, to within 1% of it. */
  public long countUpTo(double value) {
    long seen = 0;
    for (int bucket = 0; bucket < counts.length && end(bucket) <= value; bucket++) {
      seen += counts[bucket];
    }
    return seen;
  }

  public Quantiles quantiles() {
    return new Quantiles(
        count, count == 0 ? 0 : sum / count, quantile(0.5), quantile(0.9), quantile(0.99), max);
  }

  private double quantile(double share) {
    double wanted = Math.ceil(share * count);
    long seen = 0;
    for (int bucket = 0; bucket < counts.length; bucket++) {
      seen += counts[bucket];
      if (seen >= wanted && seen > 0) {
        return Math.min(max, end(bucket));
      }
    }
    return 0;
  }

  private double end(int bucket) {
    return DistanceHistogram.end(bucket) * unit;
  }
}

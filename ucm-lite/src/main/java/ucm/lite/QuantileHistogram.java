package ucm.lite;

import java.util.Arrays;

/** Counts values that are not negative, in buckets of 1/128 of the value: constant memory. */
final class QuantileHistogram {
  private final double unit;
  private long[] counts = new long[256];
  private long count;
  private double sum;
  private double max;

  /** Creates an empty histogram that tells values apart from about {@code 100 * unit} on. */
  QuantileHistogram(double unit) {
    this.unit = unit;
  }

  void add(double value) {
    int bucket = DistanceHistogram.bucket(Math.round(value / unit));
    if (bucket >= counts.length) {
      counts = Arrays.copyOf(counts, bucket + 256);
    }
    counts[bucket]++;
    count++;
    sum += value;
    max = Math.max(max, value);
  }

  long count() {
    return count;
  }

  /** How many values are at most this, to within 1% of it. */
  long countUpTo(double value) {
    long seen = 0;
    for (int bucket = 0; bucket < counts.length; bucket++) {
      if (DistanceHistogram.end(bucket) * unit > value) {
        break;
      }
      seen += counts[bucket];
    }
    return seen;
  }

  Quantiles quantiles() {
    return new Quantiles(
        count, count == 0 ? 0 : sum / count, quantile(0.5), quantile(0.9), quantile(0.99), max);
  }

  private double quantile(double share) {
    long wanted = (long) Math.ceil(share * count);
    long seen = 0;
    for (int bucket = 0; bucket < counts.length; bucket++) {
      seen += counts[bucket];
      if (seen >= wanted && seen > 0) {
        return Math.min(max, DistanceHistogram.end(bucket) * unit);
      }
    }
    return 0;
  }
}

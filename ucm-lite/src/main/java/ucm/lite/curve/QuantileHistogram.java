package ucm.lite.curve;

import java.util.Arrays;

/**
 * Counts values that are not negative, in buckets of 1/128 of the value: constant memory. A value may
 * stand for several, also for a fraction of one.
 */
public final class QuantileHistogram {
  private final double unit;
  private double[] counts = new double[256];
  private double count;
  private double sum;
  private double max;

  /** Creates an empty histogram that tells values apart from about {@code 100 * unit} on. */
  public QuantileHistogram(double unit) {
    this.unit = unit;
  }

  /** A histogram of the same values, which changes by itself. */
  public QuantileHistogram copy() {
    QuantileHistogram copy = new QuantileHistogram(unit);
    copy.counts = counts.clone();
    copy.count = count;
    copy.sum = sum;
    copy.max = max;
    return copy;
  }

  public void add(double value) {
    add(value, 1);
  }

  /** Counts a value that stands for {@code weight} values. */
  public void add(double value, double weight) {
    int bucket = DistanceHistogram.bucket(Math.round(value / unit));
    if (bucket >= counts.length) {
      counts = Arrays.copyOf(counts, bucket + 256);
    }
    counts[bucket] += weight;
    count += weight;
    sum += weight * value;
    max = Math.max(max, value);
  }

  public long count() {
    return Math.round(count);
  }

  /** How many values are at most this, to within 1% of it. */
  public long countUpTo(double value) {
    double seen = 0;
    for (int bucket = 0; bucket < counts.length && end(bucket) <= value; bucket++) {
      seen += counts[bucket];
    }
    return Math.round(seen);
  }

  public Quantiles quantiles() {
    return new Quantiles(
        count(), count == 0 ? 0 : sum / count, quantile(0.5), quantile(0.9), quantile(0.99), max);
  }

  private double quantile(double share) {
    // Counts are whole numbers unless values are weighed.
    double wanted = Math.min(count, Math.ceil(share * count));
    double seen = 0;
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

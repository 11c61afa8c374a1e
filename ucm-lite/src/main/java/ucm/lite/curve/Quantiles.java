package ucm.lite.curve;

/**
 * How a quantity is distributed, to within 1%.
 *
 * @param count values
 * @param mean their mean, exact
 * @param p50 half of the values are at most this
 * @param p90 nine tenths are at most this
 * @param p99 99 of a hundred are at most this
 * @param max the largest value
 */
public record Quantiles(long count, double mean, double p50, double p90, double p99, double max) {}

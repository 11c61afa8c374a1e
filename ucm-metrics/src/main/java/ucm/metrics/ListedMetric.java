package ucm.metrics;

import java.util.List;

/**
 * A metric that the configuration file lists.
 *
 * @param kind in which section it stands
 * @param documentation its help text; empty to keep the built-in one
 * @param buckets upper bounds of a histogram, ascending; empty to keep the built-in ones
 */
record ListedMetric(MetricKind kind, String documentation, List<Double> buckets) {}

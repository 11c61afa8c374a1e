package ucm.testkit;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.DoubleSupplier;
import ucm.api.StoreMetrics;

/** Metrics that a test can read. Thread-safe. */
public final class RecordingMetrics implements StoreMetrics {

  private static final class Sum implements Counter {
    private final LongAdder total = new LongAdder();

    @Override
    public void add(long amount) {
      if (amount < 0) {
        throw new IllegalArgumentException("a counter only grows; asked to add " + amount);
      }
      total.add(amount);
    }
  }

  private static final class Samples implements Histogram {
    private final LongAdder count = new LongAdder();
    private final DoubleAdder sum = new DoubleAdder();

    @Override
    public void record(double value) {
      count.increment();
      sum.add(value);
    }
  }

  private final Map<String, Sum> counters = new ConcurrentHashMap<>();
  private final Map<String, Samples> histograms = new ConcurrentHashMap<>();
  private final Map<String, DoubleSupplier> gauges = new ConcurrentHashMap<>();

  /** Nothing counted yet. */
  public RecordingMetrics() {}

  @Override
  public Counter counter(String name, String help) {
    return counters.computeIfAbsent(name, _ -> new Sum());
  }

  @Override
  public Histogram histogram(String name, String help) {
    return histograms.computeIfAbsent(name, _ -> new Samples());
  }

  @Override
  public void gauge(String name, String help, DoubleSupplier value) {
    gauges.put(name, value);
  }

  /** What a counter has reached. */
  public long count(String counter) {
    return known(counters, counter).total.sum();
  }

  /** How many values a histogram has recorded. */
  public long recorded(String histogram) {
    return known(histograms, histogram).count.sum();
  }

  /** The sum of the values a histogram has recorded. */
  public double sum(String histogram) {
    return known(histograms, histogram).sum.sum();
  }

  /** What a gauge says now. */
  public double gauge(String gauge) {
    return known(gauges, gauge).getAsDouble();
  }

  /** The names of all instruments, sorted. */
  public Set<String> names() {
    Set<String> names = new TreeSet<>(counters.keySet());
    names.addAll(histograms.keySet());
    names.addAll(gauges.keySet());
    return Collections.unmodifiableSet(names);
  }

  private <T> T known(Map<String, T> instruments, String name) {
    T instrument = instruments.get(name);
    if (instrument == null) {
      throw new AssertionError(
          "no code asked for an instrument " + name + "; there are " + names());
    }
    return instrument;
  }
}

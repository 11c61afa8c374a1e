package ucm.pipeline.connector.statistics;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.DoubleSupplier;
import java.util.stream.Stream;
import ucm.api.StoreMetrics;

/**
 * Listens to what the stages of a pipeline count during look-ups: which stage had the blocks, and
 * whether one could not answer. Everything is passed on. Thread-safe.
 *
 * <p>A stage takes part by counting {@code <stage>_lookup_hit_blocks} (or {@code <stage>_hit_blocks});
 * that it could not answer, by {@code _health_lookup_misses}, {@code _lookup_errors} or {@code
 * _lookup_expiries}. The sums are of all look-ups of the pipeline, so a caller that reads them around a
 * look-up of its own also sees those of others that run at the same time.
 */
public final class StageLookups implements StoreMetrics {

  private static final List<String> HITS = List.of("_lookup_hit_blocks", "_hit_blocks");
  private static final List<String> DOWN =
      List.of("_health_lookup_misses", "_lookup_errors", "_lookup_expiries");

  private final StoreMetrics delegate;
  private final List<String> stages;
  private final List<LongAdder> hits;
  private final LongAdder unanswered = new LongAdder();

  /**
   * Listens.
   *
   * @param stages the names of the pipeline's stages, the one nearest the engine first
   */
  public StageLookups(StoreMetrics scope, List<String> stages) {
    this.delegate = scope;
    this.stages = stages.stream().map(stage -> stage.toLowerCase(Locale.ROOT)).toList();
    this.hits = Stream.generate(LongAdder::new).limit(stages.size()).toList();
  }

  /** The names of the stages, in lower case, the one nearest the engine first. */
  public List<String> stages() {
    return stages;
  }

  /** Blocks that look-ups found in a stage so far. */
  public long hits(int stage) {
    return hits.get(stage).sum();
  }

  /**
   * Where the sums stand.
   *
   * @param hits of each stage
   * @param unanswered how often a stage could not answer
   */
  // Read and dropped. These records are not compared.
  @SuppressWarnings("ArrayRecordComponent")
  public record Sums(long[] hits, long unanswered) {}

  /** Where the sums stand now, before a look-up. */
  public Sums sums() {
    return new Sums(hits.stream().mapToLong(LongAdder::sum).toArray(), unanswered.sum());
  }

  /** Whether a stage could not answer since then. */
  public boolean isDownSince(Sums before) {
    return unanswered.sum() > before.unanswered;
  }

  /**
   * How many of the blocks that were found since then each stage had; the last stage has what the upper
   * stages do not report.
   *
   * @param parts how often each block was looked up
   */
  public int[] foundIn(Sums before, int found, int parts) {
    int[] stage = new int[hits.size()];
    int left = found;
    for (int i = 0; i < stage.length; i++) {
      long here = (hits(i) - before.hits[i]) / parts;
      stage[i] = i == stage.length - 1 ? left : (int) Math.min(left, here);
      left -= stage[i];
    }
    return stage;
  }

  @Override
  public Counter counter(String name, String help) {
    Counter counter = delegate.counter(name, help);
    for (String stage : stages) {
      String kind = name.startsWith(stage) ? name.substring(stage.length()) : "";
      if (HITS.contains(kind)) {
        return both(counter, hits.get(stages.indexOf(stage)));
      }
      if (DOWN.contains(kind)) {
        return both(counter, unanswered);
      }
    }
    return counter;
  }

  private static Counter both(Counter counter, LongAdder sum) {
    return amount -> {
      counter.add(amount);
      sum.add(amount);
    };
  }

  @Override
  public Histogram histogram(String name, String help) {
    return delegate.histogram(name, help);
  }

  @Override
  public void gauge(String name, String help, DoubleSupplier value) {
    delegate.gauge(name, help, value);
  }
}

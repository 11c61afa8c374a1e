package ucm.bench.store;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.Store;
import ucm.bench.measure.BenchMeasure;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.config.ConnectorSettings;
import ucm.pipeline.config.UcmConfig;

/**
 * Loads from both tiers of a pipeline such as {@code Cache|Posix|Nfs}, each beside the same blocks by a
 * pipeline that has this tier alone. What comes from the lower tier is loaded as by a node whose local
 * directories lack it. Used by one thread.
 *
 * @param directories the local ones of the other node
 */
record TierBench(Pair local, Pair below, List<String> directories) {

  private static final long PAUSE_MILLIS = 500;

  /** Loads the blocks of a round and compares them; returns how long that took, in nanoseconds. */
  interface Load {
    long from(Store store) throws InterruptedException;
  }

  /** A pipeline, and the one without the other tier. */
  record Pair(BenchMeasure measure, Pipeline both, Pipeline alone) {

    /** Looks the blocks up, as an engine does, and loads them; unless the one alone lacks some. */
    void round(boolean aloneFirst, BlockIds blocks, long bytes, Load load)
        throws InterruptedException {
      if (alone.lookup(blocks).cardinality() < blocks.size()) {
        return;
      }
      BitSet _ = both.lookup(blocks);
      long first = load.from(aloneFirst ? alone : both);
      // What is kept is written meanwhile, and not while the other one loads.
      TimeUnit.MILLISECONDS.sleep(PAUSE_MILLIS);
      long second = load.from(aloneFirst ? both : alone);
      double ofBoth = (double) bytes / (aloneFirst ? second : first);
      measure.add(ofBoth, (double) bytes / (aloneFirst ? first : second));
    }
  }

  /** Opens what is needed; nothing for a pipeline without an upper tier. */
  static List<TierBench> open(
      UcmConfig config, UnaryOperator<Path> folder, BiFunction<UcmConfig, String, Pipeline> open) {
    List<String> stages = config.pipeline().stages();
    int upper = stages.size() - 2;
    String key = upper < 0 ? "" : ownDirectories(stages.get(upper));
    List<String> own = config.directories().getOrDefault(key, List.of());
    if (own.isEmpty()) {
      return List.of();
    }
    UcmConfig onlyUpper = of(config, stages.subList(0, upper + 1));
    UcmConfig onlyLower = of(config, without(stages, upper));
    List<String> others =
        own.stream()
            .map(directory -> folder.apply(Path.of(directory).resolve("..").normalize()))
            .map(Path::toString)
            .toList();
    UcmConfig otherNode = config.with(Map.of(key, others), "engine");
    return List.of(
        new TierBench(
            new Pair(
                measure("load, from " + stages.get(upper), onlyUpper),
                open.apply(config, "upper"),
                open.apply(onlyUpper, "upper-alone")),
            new Pair(
                measure("load, from " + stages.getLast(), onlyLower),
                open.apply(otherNode, "lower"),
                open.apply(onlyLower, "lower-alone")),
            others));
  }

  /** The key of the directories of a stage that are not those of the stages below. */
  private static String ownDirectories(String stage) {
    return stage.toLowerCase(Locale.ROOT) + "_" + CommonKeys.STORAGE_BACKENDS.name();
  }

  private static BenchMeasure measure(String name, UcmConfig alone) {
    return new BenchMeasure(name, "GB/s", "load of " + alone.pipeline());
  }

  private static UcmConfig of(UcmConfig config, List<String> stages) {
    return config.with(
        Map.of(ConnectorSettings.STORE_PIPELINE.name(), new PipelineSpec(stages).toString()),
        "engine");
  }

  private static List<String> without(List<String> stages, int left) {
    List<String> others = new ArrayList<>(stages);
    others.remove(left);
    return others;
  }

  List<BenchMeasure> measures() {
    return Stream.of(local, below).map(Pair::measure).toList();
  }

  /**
   * One round, with blocks that are flushed. Those that the lower tier does not have, as with write_back,
   * are not loaded from there.
   */
  void round(int round, BlockIds blocks, long bytes, Load load) throws InterruptedException {
    local.round(round % 2 == 0, blocks, bytes, load);
    below.round(round % 2 == 0, blocks, bytes, load);
  }
}

package ucm.bench.serve;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import ucm.api.BlockLayout;
import ucm.bench.simulator.EnginePlan;
import ucm.bench.simulator.ServeEngine;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.Room;
import ucm.lite.trace.FileFault;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.statistics.MetricsScopes;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;

/**
 * Where simulated engines run: the KV memory of their ranks, which is taken once, and new folders within
 * the configured directories, so that no blocks of others are met. Used by one thread; undone by the
 * {@link Cleanup}.
 */
public final class ServeSite {

  private static final String FOLDER_PREFIX = "ucm-bench-serve-";

  private final Cleanup cleanup;
  private final UcmConfig config;
  private final StoreCatalog catalog;
  private final EngineSpec spec;
  private final MetricsScopes metrics;
  private final EnginePlan plan;
  // By the directories that they are in.
  private final Map<String, Path> folders = new LinkedHashMap<>();
  private final List<EngineMemory> memory = new ArrayList<>();

  /**
   * Takes memory and makes folders.
   *
   * @param storedBytes most that the folders will hold at a time
   * @param lessLoad options, beside those of the engine, that make the load smaller
   */
  public ServeSite(
      Cleanup cleanup,
      UcmConfig config,
      StoreCatalog catalog,
      EngineSpec spec,
      MetricsScopes metrics,
      EnginePlan plan,
      long storedBytes,
      String lessLoad) {
    this.cleanup = cleanup;
    this.config = config;
    this.catalog = catalog;
    this.spec = spec;
    this.metrics = metrics;
    this.plan = plan;
    Map<String, List<String>> directories =
        config.settings().useLite() ? Map.of() : config.directories();
    for (List<String> parents : directories.values()) {
      for (String parent : parents) {
        long share = storedBytes / parents.size();
        // Footers, and what the file system adds.
        Room.onDisk(
            "the run",
            Path.of(parent),
            share + share / 16,
            "ask for less with --bytes-per-token, " + lessLoad);
      }
    }
    BlockLayout layout = spec.kv().blockLayout();
    Room.inMemory(
        "the engine's KV memory takes",
        (long) spec.tpSize() * plan.kvBlocks() * layout.blockSize(),
        "--kv-tokens, --bytes-per-token, " + lessLoad);
    directories.values().stream()
        .flatMap(List::stream)
        .forEach(parent -> folders.put(parent, cleanup.folder(Path.of(parent), FOLDER_PREFIX)));
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      int part = spec.mla() ? 0 : rank;
      memory.add(cleanup.add(new EngineMemory(layout, part, plan.kvBlocks())));
    }
  }

  EngineSpec spec() {
    return spec;
  }

  EnginePlan plan() {
    return plan;
  }

  BlockHasher hasher() {
    return config.blockHashing(catalog).hasher(spec.model(), spec.tpSize(), spec.dtype());
  }

  Duration patience() {
    return EngineConfig.taskTimeout(config);
  }

  /** Opens an engine whose blocks are in a folder of this name. */
  ServeEngine open(String name) {
    UcmConfig here =
        folders.isEmpty()
            ? config
            : config.withDirectories(
                directory ->
                    Objects.requireNonNull(folders.get(directory)).resolve(name).toString(),
                "bench serve");
    ConnectorSetup setup = ConnectorSetup.of(here, catalog, spec).withMetricsScopes(metrics);
    if (config.settings().useLite()) {
      // The folder of the engines' own traces is left to engines that serve real requests.
      Path tmp = Path.of(System.getProperty("java.io.tmpdir"));
      setup = setup.withTraces(new TraceOptions(cleanup.folder(tmp, FOLDER_PREFIX), 1, 1));
    }
    return cleanup.add(new ServeEngine(setup, spec, hasher(), memory));
  }

  /** Removes the blocks of engines of a name, which are closed. */
  void remove(String name) {
    for (Path folder : folders.values()) {
      try {
        // Left out where it is not there.
        Cleanup.delete(folder.resolve(name));
      } catch (IOException e) {
        throw new UncheckedIOException(
            "cannot remove " + folder.resolve(name) + ": " + FileFault.of(e), e);
      }
    }
  }
}

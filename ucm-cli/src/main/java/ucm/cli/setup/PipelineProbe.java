package ucm.cli.setup;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.cli.output.Figures;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.EngineMemory.WrongBytesException;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.platform.libc.Folders;

/**
 * Sends a block through a whole pipeline, as configured: dumps it, waits until it is durable, and loads it by a
 * second instance that has nothing in memory. Once for each directory, in a folder of its own there that is
 * removed afterwards, so that no engine at work sees the block; the buffer of a Cache is made small.
 */
public record PipelineProbe(UcmConfig config, StoreCatalog catalog, Cleanup cleanup) {

  private static final String BACKENDS = CommonKeys.STORAGE_BACKENDS.name();
  private static final ConfigKey<Double> CAPACITY =
      ConfigKey.number("cache_buffer_capacity_gb").doc("");
  private static final ConfigKey<Double> BUFFER_SIZE = ConfigKey.number("buffer_size").doc("");
  private static final double CACHE_GIB = 0.0625;
  private static final int KIB = 1024;
  private static final BlockLayout LAYOUT = BlockLayout.uniform(256 * KIB, 512 * KIB, 1024 * KIB);

  /** Probes; what goes wrong is a finding. */
  public List<Finding> run() throws InterruptedException {
    String subject = "block through " + config.pipeline();
    if (!hasDirectories(config, catalog)) {
      return List.of(probed(subject, true, config));
    }
    List<Finding> findings = new ArrayList<>();
    for (String directory : config.storeConfig().get(CommonKeys.STORAGE_BACKENDS)) {
      String where = subject + " in " + directory;
      try {
        Path folder = apart(List.of(directory));
        Map<String, List<String>> values = new LinkedHashMap<>();
        for (Map.Entry<String, List<String>> tier : config.directories().entrySet()) {
          if (!tier.getKey().equals(BACKENDS)) {
            values.put(tier.getKey(), List.of(apart(tier.getValue()).toString()));
          }
        }
        values.put(BACKENDS, List.of(folder.toString()));
        findings.add(probed(where, false, config.with(values, "doctor")));
        Cleanup.delete(folder);
      } catch (IOException | RuntimeException e) {
        findings.add(failed(where, e));
      }
    }
    return findings;
  }

  /** A folder of its own within the first of some. */
  private Path apart(List<String> directories) {
    return cleanup.folder(Folders.nearest(Path.of(directories.getFirst())), ".ucm-doctor-");
  }

  /**
   * Whether the blocks of a pipeline are in directories, so that a command can have its own in folders of
   * its own.
   */
  public static boolean hasDirectories(UcmConfig config, StoreCatalog catalog) {
    if (config.storeConfig().get(CommonKeys.STORAGE_BACKENDS).isEmpty()) {
      return false;
    }
    String last = config.pipeline().stages().getLast();
    return catalog.configKeys(List.of(last)).getOrDefault(last, List.of()).stream()
        .anyMatch(key -> key.name().equals(BACKENDS));
  }

  /** Probes, and removes the block itself where no folder goes with it. */
  private Finding probed(String subject, boolean removes, UcmConfig where)
      throws InterruptedException {
    try (EngineMemory memory = new EngineMemory(LAYOUT, 1)) {
      return probe(subject, removes, where, memory);
    } catch (StoreException | WrongBytesException e) {
      return failed(subject, e);
    }
  }

  private Finding probe(String subject, boolean removes, UcmConfig where, EngineMemory memory)
      throws InterruptedException {
    Duration timeout = EngineConfig.taskTimeout(config);
    SplittableRandom random = new SplittableRandom();
    BlockIds id = BlockIds.of(random.nextLong(), random.nextLong());
    long start = System.nanoTime();
    long durableNanos;
    try (Pipeline first = cleanup.add(open(where, 1))) {
      if (!first.keepsBytes()) {
        return Finding.warning(
            subject, "it keeps no bytes", "it counts hits only: name a stage that keeps blocks");
      }
      if (removes && !first.canRemove()) {
        return Finding.warning(
            subject,
            "no block was sent: its store cannot remove blocks, so that it would stay for good",
            "a store that implements Store.remove is looked at");
      }
      memory.fill(id, 0, 1);
      try {
        first.dump(memory.transfer(id, 0, 1)).await(timeout).requireOk();
        var _ = EngineConfig.flush(first, timeout);
      } catch (StoreException e) {
        if (removes) {
          first.remove(id);
        }
        throw e;
      }
      durableNanos = System.nanoTime() - start;
    }
    memory.poison();
    boolean removed = true;
    try (Pipeline second = cleanup.add(open(where, 2))) {
      try {
        if (second.lookup(id).isEmpty()) {
          String found = "a second instance does not find it";
          return removes
              ? Finding.warning(subject, found, "what this pipeline keeps ends with its process")
              : Finding.failed(subject, found, "nothing that is stored will be found: see the log");
        }
        second.load(memory.transfer(id, 0, 1)).await(timeout).requireOk();
        memory.verify(id, 0, 1);
      } finally {
        removed = !removes || second.remove(id).get(0);
      }
    }
    return removed
        ? Finding.ok(
            subject,
            String.format(
                "%s KiB were dumped and durable after %s ms, found and loaded by a second instance,"
                    + " and are equal; removed again",
                LAYOUT.blockSize() / KIB, Figures.fixed(durableNanos / 1e6, 1)))
        : Finding.failed(
            subject, "block " + id.hex(0) + " could not be removed again", "see the log");
  }

  private Pipeline open(UcmConfig where, int instance) {
    Map<String, Object> values = EngineConfig.of(LAYOUT);
    values.put(
        CommonKeys.UNIQUE_ID.name(),
        "ucm-doctor-" + ProcessHandle.current().pid() + "-" + instance);
    if (config.pipeline().stages().contains("Cache")) {
      // The key that the file itself uses, as both together are worth a warning.
      StoreConfig given = where.storeConfig();
      boolean isOld = given.isSet(BUFFER_SIZE) && !given.isSet(CAPACITY);
      values.put((isOld ? BUFFER_SIZE : CAPACITY).name(), CACHE_GIB);
    }
    return Pipeline.open(where.with(values, "doctor"), catalog);
  }

  private static Finding failed(String subject, Exception e) {
    return Finding.failed(
        subject,
        String.valueOf(e.getMessage()),
        "until a block gets through, nothing is kept: see the findings above");
  }
}

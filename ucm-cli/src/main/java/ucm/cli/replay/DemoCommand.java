package ucm.cli.replay;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.Level;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.cli.model.KvShape;
import ucm.cli.output.Durations;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.DiskSpace;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.HostMemory;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.runtime.TimedFlush;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.HitPolicy;
import ucm.pipeline.hash.BlockHasher;

/** {@code ucm demo}: the main job on this machine: fill, restart, load everything back. */
@Command(
    name = "demo",
    description = {
      "Serves the same prompts twice through a real pipeline, with a restart of the stores"
          + " between.",
      "",
      "Round 1 finds nothing: it makes up the KV cache of each prompt and dumps it. Then the stores"
          + " are closed and opened again. Round 2 finds every block, loads it and compares every"
          + " byte. There is no model and no GPU here: what is measured is hashing, look-up and the"
          + " movement of the bytes."
    })
public final class DemoCommand extends JsonCommand {

  private static final int BLOCK_TOKENS = 128;
  private static final int VOCABULARY = 151_643;
  private static final double GB = 1e9;
  private static final String FIRST_ROUND = "1";

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--model",
      paramLabel = "NAME",
      defaultValue = "qwen2.5-0.5b",
      description =
          "whose KV layout to use: qwen2.5-0.5b, qwen2.5-7b, qwen2.5-14b, qwq-32b, llama-3.1-8b,"
              + " deepseek-r1 (default: ${DEFAULT-VALUE})")
  private String model = "";

  @Option(
      names = "--prompts",
      paramLabel = "N",
      description = "how many prompts (default: ${DEFAULT-VALUE})")
  private int prompts = 12;

  @Option(
      names = "--input-len",
      paramLabel = "TOKENS",
      description = "tokens of each prompt (default: ${DEFAULT-VALUE})")
  private int inputLen = 16000;

  @Option(
      names = "--buffer-gb",
      paramLabel = "GB",
      description = "host memory of the Cache stage (default: ${DEFAULT-VALUE})")
  private double bufferGb = 0.5;

  @Option(
      names = "--dir",
      paramLabel = "DIR",
      description =
          "where to make the temporary folder for the blocks; it is removed at the end (default:"
              + " the system's temporary folder)")
  private @Nullable Path dir;

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description =
          "use the pipeline of this file instead of Cache|Posix; its folders are used and kept, and"
              + " hit_ratio and the thresholds hold")
  private @Nullable Path config;

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "seed of the tokens (default: ${DEFAULT-VALUE})")
  private long seed = 42;

  private record Round(
      String name,
      long blocks,
      long hits,
      boolean keepsBytes,
      long movedBytes,
      double moveSeconds,
      Durations timeToKv,
      double flushSeconds) {

    /** What it was: the store that a file names may hold the blocks from before. */
    String title() {
      if (!name.equals(FIRST_ROUND)) {
        return name;
      }
      return name
          + (hits == 0
              ? ": empty store, dump"
              : hits < blocks ? ": some found, load and dump" : ": all found, load");
    }
  }

  @Override
  public void run() throws InterruptedException {
    KvShape shape = KvShape.of(model);
    BlockLayout layout = shape.layout(BLOCK_TOKENS);
    int blocksPerPrompt = inputLen / BLOCK_TOKENS;
    if (prompts < 1 || blocksPerPrompt < 1) {
      throw new UsageException(
          "--prompts is 1 or more and --input-len %s or more; found %s and %s"
              .formatted(BLOCK_TOKENS, prompts, inputLen));
    }
    long total = Math.multiplyExact((long) prompts * blocksPerPrompt, layout.blockSize());
    PrintWriter out = out();
    PrintWriter notes = json ? err() : out;
    try (Cleanup cleanup = new Cleanup()) {
      StoreCatalog catalog = plugins.catalog();
      UcmConfig ucm = pipelineConfig(cleanup, layout, blocksPerPrompt, total);
      ConnectorSetup setup =
          ConnectorSetup.of(
              ucm,
              catalog,
              EngineConfig.spec(shape.modelName(), BLOCK_TOKENS, shape.kv(BLOCK_TOKENS)));
      EngineConfig.tellUnused(ucm, err());
      describe(notes, shape, layout, ucm, blocksPerPrompt, total);
      EngineMemory memory = cleanup.add(new EngineMemory(layout, blocksPerPrompt));
      List<Round> rounds = new ArrayList<>();
      rounds.add(round(FIRST_ROUND, cleanup, ucm, setup, memory));
      memory.poison();
      rounds.add(round("2: after restart, load", cleanup, ucm, setup, memory));
      report(out, rounds, blocksPerPrompt);
    }
  }

  private UcmConfig pipelineConfig(
      Cleanup cleanup, BlockLayout layout, int blocksPerPrompt, long total) {
    if (config != null) {
      return UcmConfig.read(config);
    }
    Path parent = dir != null ? dir : Path.of(System.getProperty("java.io.tmpdir"));
    requireSpace(parent, layout, blocksPerPrompt, total);
    Path folder = cleanup.folder(parent, "ucm-demo-");
    return UcmConfig.of(
        "Cache|Posix",
        Map.of(
            "storage_backends", List.of(folder.toString()), "cache_buffer_capacity_gb", bufferGb));
  }

  /** Says what is lacking before anything is written. */
  private void requireSpace(Path parent, BlockLayout layout, int blocksPerPrompt, long total) {
    long footers = (long) prompts * blocksPerPrompt * 8192;
    DiskSpace.require(
        "the demo",
        parent,
        total + footers,
        "name another folder with --dir, or ask for less with --prompts or --input-len");
    long need = blocksPerPrompt * layout.blockSize() + (long) (bufferGb * (1L << 30));
    HostMemory.require("the demo needs", need, "--input-len or --buffer-gb");
  }

  private void describe(
      PrintWriter notes,
      KvShape shape,
      BlockLayout layout,
      UcmConfig ucm,
      int blocksPerPrompt,
      long total) {
    notes.printf(
        Locale.ROOT,
        "%d prompts of %,d tokens, %d blocks of %d tokens each; KV cache of %s%n",
        prompts,
        inputLen,
        blocksPerPrompt,
        BLOCK_TOKENS,
        shape);
    notes.printf(
        Locale.ROOT,
        "%.2f MiB a block in %d shards (one a layer), %.2f GiB in all; pipeline %s, host buffer"
            + " %s%n",
        layout.blockSize() / 1048576.0,
        layout.shardCount(),
        total / 1073741824.0,
        ucm.openedPipeline(),
        config == null ? bufferGb + " GiB" : "as configured");
    notes.flush();
  }

  private Round round(
      String name, Cleanup cleanup, UcmConfig ucm, ConnectorSetup setup, EngineMemory memory)
      throws InterruptedException {
    BlockHasher hasher = setup.hasher();
    HitPolicy policy = new HitPolicy(setup.settings(), BLOCK_TOKENS);
    Duration timeout = EngineConfig.taskTimeout(ucm);
    Durations timeToKv = new Durations();
    long hits = 0;
    long blocks = 0;
    long movedBlocks = 0;
    long moveNanos = 0;
    double flushSeconds;
    boolean keepsBytes;
    try (Pipeline pipeline = cleanup.add(setup.openPipeline(0));
        Progress progress = new Progress("round " + name, prompts)) {
      PrefixClient client =
          new PrefixClient(pipeline, memory, policy, pipeline.keepsBytes(), timeout, Level.INFO);
      SplittableRandom random = new SplittableRandom(seed);
      for (int prompt = 0; prompt < prompts; prompt++) {
        progress.at(prompt);
        int[] tokens = random.ints(inputLen, 0, VOCABULARY).toArray();
        long start = System.nanoTime();
        BlockIds ids = hasher.hash(tokens, BLOCK_TOKENS);
        long hashNanos = System.nanoTime() - start;
        PrefixClient.Served served = client.serve("demo-" + prompt, inputLen, ids);
        hits += served.hits();
        blocks += served.blocks();
        movedBlocks += served.hits() + served.dumped();
        moveNanos += served.hits() > 0 ? served.loadNanos() : 0;
        moveNanos += served.dumped() > 0 ? served.dumpNanos() : 0;
        timeToKv.add(hashNanos + served.loadNanos() + served.dumpNanos());
      }
      keepsBytes = pipeline.keepsBytes();
      flushSeconds = TimedFlush.nanos(pipeline, timeout) / 1e9;
    }
    long moved = keepsBytes ? movedBlocks * memory.blockSize() : 0;
    return new Round(
        name, blocks, hits, keepsBytes, moved, moveNanos / 1e9, timeToKv, flushSeconds);
  }

  private void report(PrintWriter out, List<Round> rounds, int blocksPerPrompt) {
    if (json) {
      Json.print(out, rounds.stream().map(DemoCommand::data).toList());
      return;
    }
    Table table =
        new Table(
            "ROUND",
            "HIT BLOCKS",
            "OF",
            "GB MOVED",
            "GB/S",
            "MS TO KV: MEAN",
            "P50",
            "P99",
            "THEN DURABLE AFTER MS");
    for (Round round : rounds) {
      table.row(
          round.title(),
          Long.toString(round.hits),
          Long.toString(round.blocks),
          String.format(Locale.ROOT, "%.2f", round.movedBytes / GB),
          round.movedBytes == 0
              ? "-"
              : String.format(Locale.ROOT, "%.2f", round.movedBytes / GB / round.moveSeconds),
          Durations.millis(round.timeToKv.meanMillis()),
          Durations.millis(round.timeToKv.quantileMillis(0.5)),
          Durations.millis(round.timeToKv.quantileMillis(0.99)),
          Durations.millis(round.flushSeconds * 1e3));
    }
    out.println();
    table.print(out);
    out.println();
    Round last = rounds.get(rounds.size() - 1);
    out.printf(
        Locale.ROOT,
        "Round 2 found %d of %d blocks of each prompt; %s.%n",
        last.hits / prompts,
        blocksPerPrompt,
        !last.keepsBytes
            ? "no bytes were moved: this pipeline keeps metadata only"
            : "every loaded byte was compared");
    out.println(
        "Time to KV is hashing, look-up and the movement of a prompt's bytes (round 1: until the"
            + " engine may reuse its memory; round 2: until all bytes are in it).");
    out.println(
        "Not measured, because there is no model and no GPU here: prefill, and copies over PCIe."
            + " The engine's memory is host memory.");
    if (last.hits != last.blocks && config == null) {
      throw new StoreException(
          "round 2 found " + last.hits + " of " + last.blocks + " blocks; all were stored");
    }
  }

  private static Map<String, Object> data(Round round) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("round", round.title());
    data.put("blocks", round.blocks);
    data.put("hit_blocks", round.hits);
    data.put("moved_bytes", round.movedBytes);
    data.put("move_seconds", round.moveSeconds);
    data.put("time_to_kv_ms_mean", round.timeToKv.meanMillis());
    data.put("time_to_kv_ms_p50", round.timeToKv.quantileMillis(0.5));
    data.put("time_to_kv_ms_p99", round.timeToKv.quantileMillis(0.99));
    data.put("flush_seconds", round.flushSeconds);
    return data;
  }
}

package ucm.cli.replay;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.StoreException;
import ucm.cli.model.ModelOptions;
import ucm.cli.output.Columns;
import ucm.cli.output.Figures;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.Spread;
import ucm.cli.output.UsageException;
import ucm.cli.replay.PrefixClient.Served;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.EngineConfig;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.PluginsOption;
import ucm.cli.runtime.Room;
import ucm.lite.tier.KvModel;
import ucm.pipeline.Pipeline;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.HitPolicy;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
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
  private Path dir = Path.of(System.getProperty("java.io.tmpdir"));

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

  @SuppressWarnings("ArrayRecordComponent") // Rounds are never compared.
  private record Round(
      int number,
      long blocks,
      long hits,
      boolean keepsBytes,
      long movedBytes,
      double moveSeconds,
      double[] millis,
      double flushSeconds) {

    /** What it was: the store that a file names may hold the blocks from before. */
    String title() {
      return number > 1
          ? "2: after restart, load"
          : hits == 0
              ? "1: empty store, dump"
              : hits < blocks ? "1: some found, load and dump" : "1: all found, load";
    }

    String rate() {
      return movedBytes == 0 ? "-" : Figures.plain(movedBytes / Figures.GB / moveSeconds);
    }

    double meanMillis() {
      return Arrays.stream(millis).average().orElse(0);
    }

    double quantile(double share) {
      return Spread.quantile(millis, share);
    }
  }

  private static final Columns<Round> COLUMNS =
      new Columns<Round>()
          .both("ROUND", "round", Round::title)
          .data("blocks", Round::blocks)
          .both("HIT BLOCKS", "hit_blocks", Round::hits)
          .text("OF", round -> Long.toString(round.blocks))
          .both("GB MOVED", "moved_bytes", Round::movedBytes, b -> Figures.plain(b / Figures.GB))
          .text("GB/S", Round::rate)
          .data("move_seconds", Round::moveSeconds)
          .both("MS TO KV: MEAN", "time_to_kv_ms_mean", Round::meanMillis, Figures::millis)
          .both("P50", "time_to_kv_ms_p50", round -> round.quantile(0.5), Figures::millis)
          .both("P99", "time_to_kv_ms_p99", round -> round.quantile(0.99), Figures::millis)
          .both(
              "THEN DURABLE AFTER MS",
              "flush_seconds",
              Round::flushSeconds,
              seconds -> Figures.millis(1e3 * seconds));

  @Override
  public void run() throws InterruptedException {
    KvModel kv = ModelOptions.named(model);
    long[] tensors = new long[kv.tensorsPerLayer()];
    Arrays.fill(tensors, (long) BLOCK_TOKENS * kv.bytesPerTokenAndTensor());
    EngineSpec engine =
        EngineConfig.spec(kv.name(), BLOCK_TOKENS, KvLayout.uniform(kv.layers(), tensors));
    BlockLayout layout = engine.kv().blockLayout();
    int blocksPerPrompt = inputLen / BLOCK_TOKENS;
    UsageException.when(
        prompts < 1 || blocksPerPrompt < 1,
        "--prompts is 1 or more and --input-len %s or more; found %s and %s"
            .formatted(BLOCK_TOKENS, prompts, inputLen));
    long blocks = (long) prompts * blocksPerPrompt;
    UsageException.when(
        blocks > Long.MAX_VALUE / 2 / layout.blockSize(),
        "--prompts %,d and --input-len %,d are %,d blocks of %,d bytes, more than any disk holds: ask for less"
            .formatted(prompts, inputLen, blocks, layout.blockSize()));
    long total = blocks * layout.blockSize();
    try (Cleanup cleanup = new Cleanup()) {
      UcmConfig ucm = config == null ? inNewFolder(cleanup, layout, total) : UcmConfig.read(config);
      ConnectorSetup setup = ConnectorSetup.of(ucm, plugins.catalog(), engine);
      EngineConfig.tellUnused(ucm, err());
      describe(json ? err() : out(), kv, layout, ucm, total);
      EngineMemory memory = cleanup.add(new EngineMemory(layout, blocksPerPrompt));
      Round first = round(1, cleanup, ucm, setup, memory);
      memory.poison();
      Round second = round(2, cleanup, ucm, setup, memory);
      List<Round> rounds = List.of(first, second);
      print(() -> COLUMNS.data(rounds), () -> show(rounds));
    }
  }

  /** Says what is lacking before anything is written. */
  private UcmConfig inNewFolder(Cleanup cleanup, BlockLayout layout, long total) {
    long footers = total / layout.blockSize() * 8192;
    Room.onDisk(
        "the demo",
        dir,
        total + footers,
        "name another folder with --dir, or ask for less with --prompts or --input-len");
    long need = total / prompts + (long) (bufferGb * Figures.GIB);
    Room.inMemory("the demo needs", need, "--input-len or --buffer-gb");
    String folder = cleanup.folder(dir, "ucm-demo-").toString();
    return UcmConfig.of(
        "Cache|Posix", Map.of("storage_backends", folder, "cache_buffer_capacity_gb", bufferGb));
  }

  private void describe(
      PrintWriter notes, KvModel kv, BlockLayout layout, UcmConfig ucm, long total) {
    notes.printf(
        Locale.ROOT,
        "%d prompts of %,d tokens, %d blocks of %d tokens each; KV cache of %s: %d layers, %d"
            + " tensor(s) a layer, %d bytes a token and tensor%n",
        prompts,
        inputLen,
        inputLen / BLOCK_TOKENS,
        BLOCK_TOKENS,
        kv.name(),
        kv.layers(),
        kv.tensorsPerLayer(),
        kv.bytesPerTokenAndTensor());
    notes.printf(
        Locale.ROOT,
        "%.2f MiB a block in %d shards (one a layer), %.2f GiB in all; pipeline %s, host buffer"
            + " %s%n",
        layout.blockSize() / Figures.MIB,
        layout.shardCount(),
        total / Figures.GIB,
        ucm.openedPipeline(),
        config == null ? bufferGb + " GiB" : "as configured");
    notes.flush();
  }

  private Round round(
      int number, Cleanup cleanup, UcmConfig ucm, ConnectorSetup setup, EngineMemory memory)
      throws InterruptedException {
    BlockHasher hasher = setup.hasher();
    HitPolicy policy = new HitPolicy(setup.settings(), BLOCK_TOKENS);
    Duration timeout = EngineConfig.taskTimeout(ucm);
    double[] millis = new double[prompts];
    Served all = new Served(0, 0, 0, 0, 0);
    long moveNanos = 0;
    try (Pipeline pipeline = cleanup.add(setup.openPipeline(0));
        Progress progress = new Progress("round " + number, prompts)) {
      PrefixClient client = new PrefixClient(pipeline, memory, policy, timeout);
      SplittableRandom random = new SplittableRandom(seed);
      for (int prompt = 0; prompt < prompts; prompt++) {
        progress.at(prompt);
        int[] tokens = random.ints(inputLen, 0, VOCABULARY).toArray();
        long start = System.nanoTime();
        BlockIds ids = hasher.hash(tokens, BLOCK_TOKENS);
        long hashNanos = System.nanoTime() - start;
        Served served = client.serve("demo-" + prompt, inputLen, ids);
        all = all.plus(served);
        moveNanos += served.hits() > 0 ? served.loadNanos() : 0;
        moveNanos += served.dumped() > 0 ? served.dumpNanos() : 0;
        millis[prompt] = (hashNanos + served.loadNanos() + served.dumpNanos()) / 1e6;
      }
      double flushSeconds = EngineConfig.flush(pipeline, timeout) / 1e9;
      boolean keepsBytes = pipeline.keepsBytes();
      long moved = keepsBytes ? (all.hits() + all.dumped()) * memory.blockSize() : 0;
      return new Round(
          number,
          all.blocks(),
          all.hits(),
          keepsBytes,
          moved,
          moveNanos / 1e9,
          millis,
          flushSeconds);
    }
  }

  private void show(List<Round> rounds) {
    PrintWriter out = out();
    out.println();
    COLUMNS.table(rounds).printSection(out);
    Round last = rounds.getLast();
    out.println(
        "Round 2 found %s of %s blocks of each prompt; %s."
            .formatted(
                last.hits / prompts,
                inputLen / BLOCK_TOKENS,
                last.keepsBytes
                    ? "every loaded byte was compared"
                    : "no bytes were moved: this pipeline keeps metadata only"));
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
}

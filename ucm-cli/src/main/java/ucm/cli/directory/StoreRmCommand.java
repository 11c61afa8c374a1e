package ucm.cli.directory;

import java.io.Console;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.DirectoryStore;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.PluginsOption;
import ucm.lite.trace.FileFault;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/** {@code ucm store rm}: removes blocks that are named. */
@Command(
    name = "rm",
    description = {
      "Removes blocks by their ids from the pipeline of a configuration file, plugins included.",
      "",
      "Engines may run: a block removed is a miss for them, but what they hold in the memory of a"
          + " Cache stays until it is evicted there. Exit code 1 when a block could not be"
          + " removed."
    })
final class StoreRmCommand extends JsonCommand {

  private static final int AT_ONCE = 1024;

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Parameters(
      paramLabel = "ID",
      arity = "0..*",
      description = "ids of blocks, 32 hexadecimal digits each, as store ls prints them")
  private List<String> ids = new ArrayList<>();

  @Option(
      names = "--all",
      paramLabel = "LIST",
      description = "remove all blocks whose ids are in this file, one in a line")
  private @Nullable Path list;

  @Option(
      names = "--config",
      paramLabel = "FILE",
      required = true,
      description = "the YAML file that names the pipeline")
  private Path config = Path.of("");

  @Option(
      names = "--layout",
      paramLabel = "BYTES",
      split = ",",
      arity = "1",
      description =
          "sizes of tensor, shard and block, as in 4096,8192,65536: for a plugin that keeps the"
              + " blocks of each layout apart, where the file does not have them")
  private List<Long> sizes = new ArrayList<>();

  @Option(names = "--yes", description = "do not ask")
  private boolean yes;

  @Override
  public Integer call() {
    BlockIds wanted = wanted();
    UcmConfig read = UcmConfig.read(config);
    StoreCatalog catalog = plugins.catalog();
    UcmConfig scheduler = read.with(asScheduler(read, catalog), "store rm");
    List<String> left = new ArrayList<>();
    int removed = 0;
    try (Cleanup cleanup = new Cleanup()) {
      Pipeline pipeline = cleanup.add(Pipeline.open(scheduler, catalog));
      if (!pipeline.canRemove()) {
        throw new StoreException(
            String.format(
                "store rm was asked to remove %s blocks from %s, and a stage of it cannot remove"
                    + " blocks (its store has no Store.remove): remove them by the means of what it"
                    + " keeps them in",
                wanted.size(), pipeline.spec()));
      }
      confirm(wanted, pipeline);
      for (int from = 0; from < wanted.size(); from += AT_ONCE) {
        BlockIds some = wanted.slice(from, Math.min(from + AT_ONCE, wanted.size()));
        BitSet found = pipeline.lookup(some);
        BitSet gone = pipeline.remove(some);
        for (int i = gone.nextClearBit(0); i < some.size(); i = gone.nextClearBit(i + 1)) {
          left.add(some.hex(i));
        }
        found.and(gone);
        removed += found.cardinality();
      }
    }
    print(wanted.size(), removed, left);
    return left.isEmpty() ? 0 : 1;
  }

  private BlockIds wanted() {
    LinkedHashSet<String> all = new LinkedHashSet<>(ids);
    if (list != null) {
      try {
        Files.readAllLines(list).stream()
            .map(String::strip)
            .filter(line -> !line.isEmpty())
            .forEach(all::add);
      } catch (IOException e) {
        throw new UsageException(
            "--all names a file of ids; cannot read " + list + ": " + FileFault.of(e));
      }
    }
    UsageException.when(all.isEmpty(), "name ids of blocks, or a file of them with --all");
    try {
      return BlockIds.ofHex(List.copyOf(all));
    } catch (IllegalArgumentException e) {
      throw new UsageException(String.valueOf(e.getMessage()));
    }
  }

  /** Looks up and removes only; a store of files finds a block of any layout by its name. */
  private Map<String, Object> asScheduler(UcmConfig read, StoreCatalog catalog) {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put(CommonKeys.DEVICE_ID.name(), -1L);
    boolean isGiven = read.storeConfig().find(CommonKeys.BLOCK_SIZE).isPresent();
    if (!sizes.isEmpty()) {
      UsageException.when(sizes.size() != 3, "--layout is three sizes in bytes; found " + sizes);
      addLayout(values, sizes.get(0), sizes.get(1), sizes.get(2));
    } else if (!isGiven) {
      String last = read.pipeline().stages().getLast();
      if (!(catalog.create(last) instanceof DirectoryStore)) {
        throw new UsageException(
            String.format(
                "%s may keep the blocks of each layout apart, and %s does not say the layout: add"
                    + " --layout with the sizes of tensor, shard and block that the engine uses",
                last, config));
      }
      BlockLayout any = BlockLayout.uniform(4096, 4096, 4096);
      addLayout(values, any.tensorSize(0), any.shardSize(), any.blockSize());
    }
    return values;
  }

  private static void addLayout(Map<String, Object> values, long tensor, long shard, long block) {
    values.put(CommonKeys.TENSOR_SIZE.name(), tensor);
    values.put(CommonKeys.SHARD_SIZE.name(), shard);
    values.put(CommonKeys.BLOCK_SIZE.name(), block);
  }

  // As in Progress: null where a console was asked for and there is none.
  @SuppressWarnings("SystemConsoleNull")
  private void confirm(BlockIds wanted, Pipeline pipeline) {
    if (yes) {
      return;
    }
    Console console = System.console();
    if (console == null || !console.isTerminal()) {
      throw new UsageException("there is no terminal to ask on: add --yes to remove the blocks");
    }
    String answer =
        console.readLine("remove %d blocks from %s? [y/N] ", wanted.size(), pipeline.spec());
    UsageException.when(
        answer == null || !answer.strip().toLowerCase(Locale.ROOT).matches("y|yes"),
        "nothing was removed");
  }

  private void print(int asked, int removed, List<String> left) {
    PrintWriter out = out();
    int absent = asked - removed - left.size();
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("asked_blocks", asked);
      data.put("removed_blocks", removed);
      data.put("absent_blocks", absent);
      data.put("not_removed", left);
      Json.print(out, data);
      return;
    }
    out.printf(
        Locale.ROOT,
        "removed %d blocks; %d of the %d asked for were not there%n",
        removed,
        absent,
        asked);
    if (!left.isEmpty()) {
      out.printf(
          Locale.ROOT,
          "%d could not be removed (see the log), the first is %s%n",
          left.size(),
          left.getFirst());
    }
  }
}

package ucm.cli.directory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.api.BlockIds;
import ucm.api.CommonKeys;
import ucm.api.StoreException;
import ucm.api.admin.DirectoryStore;
import ucm.api.admin.StoreDirectories;
import ucm.cli.output.Fields;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;
import ucm.lite.trace.FileFault;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;

/** {@code ucm store rm}: removes blocks that are named. */
@Command(
    name = "rm",
    description = {
      "Removes blocks by their ids from the pipeline of a configuration file, plugins included; or"
          + " from a bucket, named before the ids as in s3://bucket/prefix, in all layouts.",
      "",
      "Engines may run: a block removed is a miss for them, but what they hold in the memory of a"
          + " Cache stays until it is evicted there. Exit code 1 when a block could not be"
          + " removed."
    })
final class StoreRmCommand extends JsonCommand {

  private static final int AT_ONCE = 1024;

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "the YAML file that names the pipeline; with an address, its other keys")
  private @Nullable Path config;

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

  @Mixin private AddressKeys keys = new AddressKeys();

  @Override
  public Integer call() {
    if (!ids.isEmpty() && AddressKeys.isAddress(ids.getFirst())) {
      return removeAt(ids.removeFirst());
    }
    BlockIds wanted = wanted();
    Path file = config;
    if (file == null) {
      throw new UsageException(
          "name the file of a pipeline with --config, or an address of a bucket before the ids");
    }
    UcmConfig read = UcmConfig.read(file);
    StoreCatalog catalog = keys.catalog();
    UcmConfig scheduler = read.with(asScheduler(read, catalog), "store rm");
    List<String> left = new ArrayList<>();
    int removed = 0;
    try (Cleanup cleanup = new Cleanup()) {
      Pipeline open = cleanup.add(Pipeline.open(scheduler, catalog));
      if (!open.canRemove()) {
        throw new StoreException(
            String.format(
                "store rm was asked to remove %s blocks from %s, and a stage of it cannot remove"
                    + " blocks (its store has no Store.remove): remove them by the means of what it"
                    + " keeps them in",
                wanted.size(), open.spec()));
      }
      confirm(yes, "remove %d blocks from %s? [y/N] ".formatted(wanted.size(), open.spec()));
      for (int from = 0; from < wanted.size(); from += AT_ONCE) {
        BlockIds some = wanted.slice(from, Math.min(from + AT_ONCE, wanted.size()));
        BitSet found = open.lookup(some);
        BitSet gone = open.remove(some);
        for (int i = gone.nextClearBit(0); i < some.size(); i = gone.nextClearBit(i + 1)) {
          left.add(some.hex(i));
        }
        found.and(gone);
        removed += found.cardinality();
      }
    }
    show(wanted.size(), removed, left);
    return left.isEmpty() ? 0 : 1;
  }

  private int removeAt(String address) {
    BlockIds wanted = wanted();
    StoreDirectories blocks = keys.open(address, config, Map.of());
    confirm(yes, "remove %d blocks from %s? [y/N] ".formatted(wanted.size(), address));
    show(wanted.size(), blocks.remove(wanted).cardinality(), List.of());
    return 0;
  }

  private BlockIds wanted() {
    LinkedHashSet<String> all = new LinkedHashSet<>(ids);
    if (list != null) {
      try (Stream<String> lines = Files.lines(list)) {
        lines.map(String::strip).filter(line -> !line.isEmpty()).forEach(all::add);
      } catch (IOException e) {
        throw new UsageException(
            "--all names a file of ids; cannot read " + list + ": " + FileFault.of(e));
      }
    }
    UsageException.when(all.isEmpty(), "name ids of blocks, or a file of them with --all");
    return UsageException.accepted(() -> BlockIds.ofHex(List.copyOf(all)));
  }

  /** Looks up and removes only; a store of files finds a block of any layout by its name. */
  private Map<String, Object> asScheduler(UcmConfig read, StoreCatalog catalog) {
    Fields values = new Fields().with(CommonKeys.DEVICE_ID.name(), -1L);
    List<Long> layout = sizes;
    if (layout.isEmpty() && read.storeConfig().find(CommonKeys.BLOCK_SIZE).isPresent()) {
      return values;
    }
    if (layout.isEmpty()) {
      String last = read.pipeline().stages().getLast();
      UsageException.when(
          !(catalog.create(last) instanceof DirectoryStore),
          String.format(
              "%s may keep the blocks of each layout apart, and %s does not say the layout: add"
                  + " --layout with the sizes of tensor, shard and block that the engine uses",
              last, config));
      layout = List.of(4096L, 4096L, 4096L);
    }
    UsageException.when(layout.size() != 3, "--layout is three sizes in bytes; found " + sizes);
    return values
        .with(CommonKeys.TENSOR_SIZE.name(), layout.get(0))
        .with(CommonKeys.SHARD_SIZE.name(), layout.get(1))
        .with(CommonKeys.BLOCK_SIZE.name(), layout.get(2));
  }

  private void show(int asked, int removed, List<String> left) {
    int absent = asked - removed - left.size();
    print(
        () ->
            new Fields()
                .with("asked_blocks", asked)
                .with("removed_blocks", removed)
                .with("absent_blocks", absent)
                .with("not_removed", left),
        () -> {
          say(
              "removed %s blocks; %s of the %s asked for were not there"
                  .formatted(removed, absent, asked));
          if (!left.isEmpty()) {
            say(left.size() + " could not be removed (see the log), the first is " + left.get(0));
          }
        });
  }
}

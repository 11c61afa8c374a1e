package ucm.cli.directory;

import java.time.temporal.ChronoUnit;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.UsageException;

/** {@code ucm store ls}: the blocks in directories, a line each. */
@Command(name = "ls", description = "Lists the blocks in directories.")
final class StoreLsCommand extends DirectoryCommand {

  enum Sort {
    COLDEST(Comparator.comparing(StoredBlock::lastUse)),
    NEWEST(Comparator.comparing(StoredBlock::lastUse).reversed()),
    LARGEST(Comparator.comparingLong(StoredBlock::byteSize).reversed()),
    ID(Comparator.comparing(StoredBlock::id));

    @SuppressWarnings("ImmutableEnumChecker") // Comparators have no state.
    private final Comparator<StoredBlock> order;

    Sort(Comparator<StoredBlock> order) {
      this.order = order.thenComparing(StoredBlock::id);
    }
  }

  private static final Columns<StoredBlock> COLUMNS =
      new Columns<StoredBlock>()
          .both("ID", "id", StoredBlock::id)
          .data("directory", StoredBlock::directory)
          .both("BYTES", "bytes", StoredBlock::byteSize)
          .data("used_bytes", StoredBlock::usedBytes)
          .data("last_use", StoredBlock::lastUse)
          .text("LAST USE", block -> block.lastUse().truncatedTo(ChronoUnit.SECONDS).toString())
          .data("checksums", StoredBlock::isVerifiable)
          .text("CHECKSUMS", StoreLsCommand::checksums)
          .data("fault", StoredBlock::fault)
          .data("layout", block -> data(block.layout()))
          .text("LAYOUT", block -> text(block.layout()))
          .text("DIRECTORY", StoredBlock::directory);

  @Option(
      names = "--sort",
      paramLabel = "ORDER",
      defaultValue = "coldest",
      description = "what comes first: coldest (default), newest, largest or id")
  private Sort sort = Sort.COLDEST;

  @Option(names = "--limit", paramLabel = "N", description = "list no more than the first N")
  private @Nullable Integer limit;

  @Option(
      names = "--prefix",
      paramLabel = "HEX",
      defaultValue = "",
      description = "only blocks whose id begins with these digits")
  private String prefix = "";

  @Override
  public void run() {
    UsageException.atLeast("--limit", limit, 1);
    String start = prefix.toLowerCase(Locale.ROOT);
    UsageException.when(
        !start.matches("[0-9a-f]{0,32}"),
        "--prefix is up to 32 hexadecimal digits; found " + prefix);
    int most = limit == null ? Integer.MAX_VALUE : limit;
    StoreDirectories directories = open(Map.of());
    // Its head is the block that is listed last.
    PriorityQueue<StoredBlock> first = new PriorityQueue<>(sort.order.reversed());
    Consumer<StoredBlock> keep =
        block -> {
          if (block.id().startsWith(start)) {
            first.add(block);
            if (first.size() > most) {
              first.remove();
            }
          }
        };
    List<StoredBlock> blocks =
        onBlocks(
            work -> {
              directories.list(work, keep);
              return first.stream().sorted(sort.order).toList();
            });
    printWhole(
        () -> Map.of("blocks", COLUMNS.data(blocks)), () -> COLUMNS.table(blocks).print(out()));
  }

  private static String checksums(StoredBlock block) {
    return block.fault() != null ? "damaged" : block.isVerifiable() ? "yes" : "none";
  }

  static String text(@Nullable StoredLayout layout) {
    return layout == null
        ? "unknown"
        : "tensor %s / shard %s / block %s"
            .formatted(
                layout.tensorSize() == 0 ? "of several sizes" : layout.tensorSize(),
                layout.shardSize(),
                layout.blockSize());
  }

  static @Nullable Fields data(@Nullable StoredLayout layout) {
    return layout == null
        ? null
        : new Fields()
            .with("tensor_size", layout.tensorSize() == 0 ? null : layout.tensorSize())
            .with("tensors_per_shard", layout.tensorCount())
            .with("shard_size", layout.shardSize())
            .with("shards_per_block", layout.shardCount())
            .with("block_size", layout.blockSize());
  }
}

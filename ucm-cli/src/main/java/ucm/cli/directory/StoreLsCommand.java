package ucm.cli.directory;

import java.io.PrintWriter;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.admin.StoreDirectories;
import ucm.api.admin.StoredBlock;
import ucm.api.admin.StoredLayout;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.Cleanup;

/** {@code ucm store ls}: the blocks in directories, a line each. */
@Command(name = "ls", description = "Lists the blocks in directories.")
final class StoreLsCommand extends JsonCommand {

  /** What comes first. */
  enum Sort {
    COLDEST,
    NEWEST,
    LARGEST,
    ID
  }

  @Mixin private DirectoriesInput input = new DirectoriesInput();

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
    if (!start.matches("[0-9a-f]{0,32}")) {
      throw new UsageException("--prefix is up to 32 hexadecimal digits; found " + prefix);
    }
    int most = limit == null ? Integer.MAX_VALUE : limit;
    StoreDirectories directories = input.open();
    // Its head is the block that is listed last.
    Comparator<StoredBlock> order = order();
    PriorityQueue<StoredBlock> first = new PriorityQueue<>(order.reversed());
    try (Cleanup cleanup = new Cleanup()) {
      directories.list(
          cleanup.add(new DirectoryProgress("blocks", 1)),
          block -> {
            if (block.id().startsWith(start)) {
              first.add(block);
              if (first.size() > most) {
                first.remove();
              }
            }
          });
    }
    if (Cleanup.interrupted()) {
      return;
    }
    List<StoredBlock> blocks = new ArrayList<>(first);
    blocks.sort(order);
    PrintWriter out = out();
    if (json) {
      Json.print(out, Map.of("blocks", blocks.stream().map(StoreLsCommand::data).toList()));
      return;
    }
    Table table = new Table("ID", "BYTES", "LAST USE", "CHECKSUMS", "LAYOUT", "DIRECTORY");
    for (StoredBlock block : blocks) {
      StoredLayout layout = block.layout();
      table.row(
          block.id(),
          Long.toString(block.byteSize()),
          block.lastUse().truncatedTo(ChronoUnit.SECONDS).toString(),
          checksums(block),
          layout == null ? "unknown" : StoredLayoutText.of(layout),
          block.directory());
    }
    table.print(out);
  }

  private Comparator<StoredBlock> order() {
    Comparator<StoredBlock> order =
        switch (sort) {
          case COLDEST -> Comparator.comparing(StoredBlock::lastUse);
          case NEWEST -> Comparator.comparing(StoredBlock::lastUse).reversed();
          case LARGEST -> Comparator.comparingLong(StoredBlock::byteSize).reversed();
          case ID -> Comparator.comparing(StoredBlock::id);
        };
    return order.thenComparing(StoredBlock::id);
  }

  private static String checksums(StoredBlock block) {
    return block.fault() != null ? "damaged" : block.isVerifiable() ? "yes" : "none";
  }

  private static Map<String, Object> data(StoredBlock block) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("id", block.id());
    data.put("directory", block.directory());
    data.put("bytes", block.byteSize());
    data.put("used_bytes", block.usedBytes());
    data.put("last_use", block.lastUse().toString());
    data.put("checksums", block.isVerifiable());
    data.put("fault", block.fault());
    data.put("layout", StoredLayoutText.data(block.layout()));
    return data;
  }
}

package ucm.cli.directory;

import java.io.PrintWriter;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.api.admin.StoreDirectories;
import ucm.cli.output.ByteText;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.runtime.Cleanup;

/** {@code ucm store stat}: what directories hold. */
@Command(
    name = "stat",
    description =
        "Says what directories hold: blocks, bytes, layouts, leftovers, times of use, who collects."
            + " Reads the end of every file.")
final class StoreStatCommand extends JsonCommand {

  @Mixin private DirectoriesInput input = new DirectoriesInput();

  @Override
  public void run() {
    StoreDirectories directories = input.open();
    List<DirectorySummary> summaries;
    try (Cleanup cleanup = new Cleanup()) {
      summaries = directories.summarize(cleanup.add(new DirectoryProgress("blocks", 1)));
    }
    if (Cleanup.interrupted()) {
      return;
    }
    PrintWriter out = out();
    if (json) {
      Json.print(
          out, Map.of("directories", summaries.stream().map(StoreStatCommand::data).toList()));
      return;
    }
    String gap = "";
    for (DirectorySummary summary : summaries) {
      out.print(gap);
      print(out, summary);
      gap = System.lineSeparator();
    }
  }

  private static void print(PrintWriter out, DirectorySummary found) {
    Table table = new Table("DIRECTORY", found.directory());
    found.notes().forEach(note -> table.row("note", note));
    table.row("blocks", found.blocks() + ", " + ByteText.of(found.payloadBytes()));
    for (LayoutCount layout : found.layouts()) {
      table.row("  of layout", StoredLayoutText.of(layout.layout()) + " bytes: " + layout.blocks());
    }
    table.row("  without checksums", "" + found.unverifiedBlocks());
    table.row("really used", ByteText.of(found.usedBytes()));
    table.row(
        "folders", found.folders() + ", the fullest with " + found.fullestFolder() + " files");
    table.row("used first, last", time(found.oldestUse()) + ", " + time(found.newestUse()));
    table.row(
        "temporary files",
        "%s being written, %s of dead writers, %s of unknown writers"
            .formatted(found.livingTempFiles(), found.deadTempFiles(), found.unknownTempFiles()));
    table.row("damaged, in quarantine", found.faultyFiles() + ", " + found.quarantinedFiles());
    table.row("other files", "" + found.otherFiles());
    table.row(
        "file system",
        ByteText.of(found.totalBytes()) + ", " + ByteText.of(found.freeBytes()) + " free");
    table.row("collector", found.collector());
    table.print(out);
  }

  private static String time(@Nullable Instant instant) {
    return instant == null ? "never" : instant.truncatedTo(ChronoUnit.SECONDS).toString();
  }

  private static Map<String, Object> data(DirectorySummary found) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("directory", found.directory());
    data.put("notes", found.notes());
    data.put("blocks", found.blocks());
    data.put("payload_bytes", found.payloadBytes());
    data.put("used_bytes", found.usedBytes());
    data.put("layouts", found.layouts().stream().map(StoreStatCommand::data).toList());
    data.put("unverified_blocks", found.unverifiedBlocks());
    data.put("damaged_files", found.faultyFiles());
    data.put("other_files", found.otherFiles());
    data.put("living_temp_files", found.livingTempFiles());
    data.put("dead_temp_files", found.deadTempFiles());
    data.put("unknown_temp_files", found.unknownTempFiles());
    data.put("quarantined_files", found.quarantinedFiles());
    data.put("oldest_use", found.oldestUse() == null ? null : found.oldestUse().toString());
    data.put("newest_use", found.newestUse() == null ? null : found.newestUse().toString());
    data.put("folders", found.folders());
    data.put("fullest_folder_files", found.fullestFolder());
    data.put("file_system_bytes", found.totalBytes());
    data.put("free_bytes", found.freeBytes());
    data.put("collector", found.collector());
    return data;
  }

  private static Map<String, Object> data(LayoutCount count) {
    Map<String, Object> data = new LinkedHashMap<>();
    Map<String, Object> layout = StoredLayoutText.data(count.layout());
    data.putAll(layout == null ? Map.of() : layout);
    data.put("blocks", count.blocks());
    return data;
  }
}

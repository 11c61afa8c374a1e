package ucm.cli.directory;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import ucm.api.admin.DirectorySummary;
import ucm.api.admin.DirectorySummary.LayoutCount;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.Figures;
import ucm.cli.output.Table;

/** {@code ucm store stat}: what directories hold. */
@Command(
    name = "stat",
    description =
        "Says what directories hold: blocks, bytes, layouts, leftovers, times of use, who collects."
            + " Reads the end of every file.")
final class StoreStatCommand extends DirectoryCommand {

  private static final Columns<DirectorySummary> DATA =
      new Columns<DirectorySummary>()
          .data("directory", DirectorySummary::directory)
          .data("notes", DirectorySummary::notes)
          .data("blocks", DirectorySummary::blocks)
          .data("payload_bytes", DirectorySummary::payloadBytes)
          .data("used_bytes", DirectorySummary::usedBytes)
          .data("layouts", found -> found.layouts().stream().map(StoreStatCommand::data).toList())
          .data("unverified_blocks", DirectorySummary::unverifiedBlocks)
          .data("damaged_files", DirectorySummary::faultyFiles)
          .data("other_files", DirectorySummary::otherFiles)
          .data("living_temp_files", DirectorySummary::livingTempFiles)
          .data("dead_temp_files", DirectorySummary::deadTempFiles)
          .data("unknown_temp_files", DirectorySummary::unknownTempFiles)
          .data("quarantined_files", DirectorySummary::quarantinedFiles)
          .data("oldest_use", DirectorySummary::oldestUse)
          .data("newest_use", DirectorySummary::newestUse)
          .data("folders", DirectorySummary::folders)
          .data("fullest_folder_files", DirectorySummary::fullestFolder)
          .data("file_system_bytes", DirectorySummary::totalBytes)
          .data("free_bytes", DirectorySummary::freeBytes)
          .data("collector", DirectorySummary::collector);

  @Override
  public void run() {
    List<DirectorySummary> summaries = onBlocks(open(Map.of())::summarize);
    printWhole(() -> Map.of("directories", DATA.data(summaries)), () -> show(summaries));
  }

  private void show(List<DirectorySummary> summaries) {
    String gap = "";
    for (DirectorySummary summary : summaries) {
      out().print(gap);
      table(summary).print(out());
      gap = System.lineSeparator();
    }
  }

  private static Table table(DirectorySummary found) {
    Table table = new Table("DIRECTORY", found.directory());
    found.notes().forEach(note -> table.row("note", note));
    table.row("blocks", found.blocks() + ", " + Figures.bytes(found.payloadBytes()));
    for (LayoutCount layout : found.layouts()) {
      String text = StoreLsCommand.text(layout.layout());
      table.row("  of layout", text + " bytes: " + layout.blocks());
    }
    table.row("  without checksums", "" + found.unverifiedBlocks());
    table.row("really used", Figures.bytes(found.usedBytes()));
    table.row(
        "folders", found.folders() + ", the fullest with " + found.fullestFolder() + " files");
    table.row("used first, last", time(found.oldestUse()) + ", " + time(found.newestUse()));
    table.row(
        "temporary files",
        "%s being written, %s of dead writers, %s of unknown writers"
            .formatted(found.livingTempFiles(), found.deadTempFiles(), found.unknownTempFiles()));
    table.row("damaged, in quarantine", found.faultyFiles() + ", " + found.quarantinedFiles());
    table.row("other files", "" + found.otherFiles());
    String total = Figures.bytes(found.totalBytes());
    table.row("file system", total + ", " + Figures.bytes(found.freeBytes()) + " free");
    table.row("collector", found.collector());
    return table;
  }

  private static String time(@Nullable Instant instant) {
    return instant == null ? "never" : instant.truncatedTo(ChronoUnit.SECONDS).toString();
  }

  private static Fields data(LayoutCount count) {
    Fields layout = StoreLsCommand.data(count.layout());
    return (layout == null ? new Fields() : layout).with("blocks", count.blocks());
  }
}

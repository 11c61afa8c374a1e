package ucm.cli.setup;

import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.JsonCommand;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.catalog.StoreEntry;

/** {@code ucm stores}: what a pipeline string may name, and what could not be loaded. */
@Command(
    name = "stores",
    description = "Lists the stores found: those of the image and those of plugins, with problems.")
public final class StoresCommand extends JsonCommand {

  private static final Columns<StoreEntry> STORES =
      new Columns<StoreEntry>()
          .both("NAME", "name", StoreEntry::name, name -> name.isEmpty() ? "-" : name)
          .both("MODULE", "module", StoreEntry::module)
          .both("VERSION", "version", StoreEntry::version)
          .both("LOCATION", "location", StoreEntry::location)
          .data("usable", StoreEntry::usable)
          .data("problems", StoreEntry::problems)
          .text("USABLE", store -> store.usable() ? "yes" : "no");

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Override
  public void run() {
    StoreCatalog catalog = plugins.listing();
    print(
        () ->
            new Fields()
                .with("stores", STORES.data(catalog.entries()))
                .with("problems", catalog.problems())
                .with("block_hashers", catalog.blockHashings())
                .with("searched", catalog.searched()),
        () -> show(out(), catalog));
  }

  private static void show(PrintWriter out, StoreCatalog catalog) {
    STORES.table(catalog.entries()).printSection(out);
    out.println("Block hashers: " + String.join(", ", catalog.blockHashings()));
    if (!catalog.problems().isEmpty()) {
      out.println();
      out.println("Not loaded:");
      catalog.problems().forEach(problem -> out.println("  " + problem));
    }
  }
}

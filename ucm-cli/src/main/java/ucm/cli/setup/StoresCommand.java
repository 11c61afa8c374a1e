package ucm.cli.setup;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Table;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.CatalogProblem;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.catalog.StoreEntry;

/** {@code ucm stores}: what a pipeline string may name, and what could not be loaded. */
@Command(
    name = "stores",
    description = "Lists the stores found: those of the image and those of plugins, with problems.")
public final class StoresCommand extends JsonCommand {

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Override
  public void run() {
    StoreCatalog catalog = plugins.catalog();
    PrintWriter out = out();
    if (json) {
      Json.print(out, data(catalog));
      return;
    }
    Table table = new Table("NAME", "MODULE", "VERSION", "LOCATION", "PROBLEMS");
    for (StoreEntry entry : catalog.entries()) {
      table.row(
          entry.name().isEmpty() ? "-" : entry.name(),
          entry.module(),
          entry.version(),
          entry.location(),
          entry.usable() ? "none" : String.join("; ", entry.problems()));
    }
    table.print(out);
    out.println();
    out.println("Block hashers: " + String.join(", ", catalog.blockHashings()));
    List<CatalogProblem> problems = catalog.problems();
    if (!problems.isEmpty()) {
      out.println();
      out.println("Not loaded:");
      problems.forEach(problem -> out.println("  " + problem));
    }
  }

  private static Map<String, Object> data(StoreCatalog catalog) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("stores", catalog.entries().stream().map(StoresCommand::data).toList());
    data.put("problems", catalog.problems().stream().map(StoresCommand::data).toList());
    data.put("block_hashers", catalog.blockHashings());
    data.put("searched", catalog.searched());
    return data;
  }

  private static Map<String, Object> data(StoreEntry entry) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("name", entry.name());
    data.put("module", entry.module());
    data.put("version", entry.version());
    data.put("location", entry.location());
    data.put("usable", entry.usable());
    data.put("problems", entry.problems());
    return data;
  }

  private static Map<String, Object> data(CatalogProblem problem) {
    return Map.of(
        "location", problem.location(), "subject", problem.subject(), "message", problem.message());
  }
}

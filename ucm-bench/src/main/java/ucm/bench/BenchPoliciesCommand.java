package ucm.bench;

import java.io.PrintWriter;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import ucm.bench.store.PolicyTrial;
import ucm.bench.store.SyntheticPrompts;
import ucm.cli.output.Json;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.output.Table;
import ucm.cli.output.UsageException;
import ucm.cli.runtime.LogSetup;
import ucm.cli.runtime.PluginsOption;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceReaderOptions;
import ucm.lite.trace.TraceRequest;
import ucm.pipeline.catalog.StoreCatalog;

/** {@code ucm bench policies}: the hit rates of the Cache's eviction policies. */
@Command(
    name = "policies",
    description = {
      "Compares the eviction policies of Cache (cache_policy) on traces.",
      "",
      "Each request is looked up in a real Cache store; what it has of the prompt from its start on"
          + " is loaded and compared, the rest is dumped. A block counts as a hit when all before"
          + " it hit. Sizes are in percent of the different blocks of a trace. Without FILE, traces"
          + " are made up."
    })
final class BenchPoliciesCommand extends JsonCommand {

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Parameters(
      arity = "0..*",
      paramLabel = "FILE",
      description = "traces: plain or .gz files, or folders; a trace each")
  private List<String> files = List.of();

  @Option(
      names = "--policies",
      paramLabel = "NAME",
      split = ",",
      defaultValue = "lru,aged_lru,s3fifo",
      description = "values of cache_policy (default: ${DEFAULT-VALUE})")
  private List<String> policies = List.of();

  @Option(
      names = "--percent",
      paramLabel = "P",
      split = ",",
      defaultValue = "1,5,10,25",
      description =
          "sizes of the cache in percent of the different blocks (default: ${DEFAULT-VALUE})")
  private List<Double> percents = List.of();

  /** The hit rates of one policy on one trace, one for each size. */
  private record Row(PolicyTrial trial, String policy, List<Double> hitRates) {}

  @Override
  public void run() {
    for (double percent : percents) {
      UsageException.when(
          !(percent > 0 && percent <= 100),
          "--percent is above 0 and at most 100; found " + percent);
    }
    LogSetup.onlyWarnings();
    StoreCatalog catalog = plugins.catalog();
    List<PolicyTrial> trials =
        files.isEmpty() ? SyntheticPrompts.all() : files.stream().map(this::read).toList();
    List<Row> rows = new ArrayList<>();
    int total = trials.size() * policies.size() * percents.size();
    int done = 0;
    try (Progress progress = new Progress("bench policies", total)) {
      for (PolicyTrial trial : trials) {
        for (String policy : policies) {
          List<Double> hitRates = new ArrayList<>();
          for (double percent : percents) {
            hitRates.add(trial.hitRate(catalog, policy, trial.capacity(percent)));
            progress.at(++done);
          }
          rows.add(new Row(trial, policy, hitRates));
        }
      }
    }
    PrintWriter out = out();
    if (json) {
      Json.print(out, Map.of("results", rows.stream().map(this::data).toList()));
    } else {
      print(out, trials, rows);
    }
  }

  private PolicyTrial read(String file) {
    List<TraceRequest> requests = new ArrayList<>();
    TraceReader reader = new TraceReader(TraceReaderOptions.DEFAULT);
    long bad = reader.read(List.of(file), requests::add).badLines();
    if (bad > 0) {
      err().println("ucm: " + file + ": skipped " + bad + " bad line(s)");
    }
    return new PolicyTrial(file, requests);
  }

  private void print(PrintWriter out, List<PolicyTrial> trials, List<Row> rows) {
    for (PolicyTrial trial : trials) {
      out.printf(
          Locale.ROOT,
          "%s: %,d requests, %,d blocks, %,d different; without a bound %.2f%% hit%n",
          trial.name(),
          trial.requests(),
          trial.blocks(),
          trial.unique(),
          100 * trial.bound());
      Table table =
          new Table(
              Stream.concat(Stream.of("POLICY"), percents.stream().map(BenchPoliciesCommand::head))
                  .toArray(String[]::new));
      for (Row row : rows) {
        if (row.trial() == trial) {
          List<String> cells = new ArrayList<>(List.of(row.policy()));
          for (double rate : row.hitRates()) {
            cells.add(String.format(Locale.ROOT, "%.2f%%", 100 * rate));
          }
          table.row(cells.toArray(String[]::new));
        }
      }
      table.print(out);
      out.println();
    }
  }

  private static String head(double percent) {
    String number = BigDecimal.valueOf(percent).stripTrailingZeros().toPlainString();
    return "HITS AT " + number + "%";
  }

  private Map<String, Object> data(Row row) {
    List<Map<String, Object>> sizes = new ArrayList<>();
    for (int i = 0; i < percents.size(); i++) {
      Map<String, Object> size = new LinkedHashMap<>();
      size.put("percent", percents.get(i));
      size.put("capacity_blocks", row.trial().capacity(percents.get(i)));
      size.put("hit_rate", row.hitRates().get(i));
      sizes.add(size);
    }
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("trace", row.trial().name());
    data.put("requests", row.trial().requests());
    data.put("blocks", row.trial().blocks());
    data.put("different_blocks", row.trial().unique());
    data.put("hit_rate_unbounded", row.trial().bound());
    data.put("policy", row.policy());
    data.put("sizes", sizes);
    return data;
  }
}

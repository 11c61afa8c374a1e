package ucm.dist;

import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import ucm.api.Checkup;
import ucm.api.Checkup.Finding;
import ucm.api.Checkup.Status;
import ucm.api.StoreConfig;
import ucm.pipeline.ConfigReport;
import ucm.pipeline.UcmConfig;

/** {@code ucm doctor}: whether this machine has what UCM needs. */
@Command(
    name = "doctor",
    description = {
      "Looks whether this machine has what UCM needs, and says what to do where it has not.",
      "",
      "With --config, what its pipeline asks for is looked at: a part that is missing is a warning"
          + " or nothing at all without it, and a failure when the file asks for that part. Exit"
          + " code 1 when something failed, 2 when the file itself is wrong; warnings fail nothing."
    })
final class DoctorCommand implements Callable<Integer> {

  private static final int WRONG_CONFIG = 2;

  @Spec private CommandSpec spec;
  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "look at what the pipeline of this file needs")
  private @Nullable Path config;

  @Option(names = "--json", description = "print JSON instead of a table")
  private boolean json;

  @Override
  public Integer call() {
    UcmConfig read = config == null ? null : UcmConfig.read(config);
    ConfigReport report = read == null ? null : read.check(plugins.catalog());
    List<Finding> findings = new ArrayList<>();
    for (Checkup checkup : checkups()) {
      // A view for each: what one records in it is not the next one's.
      StoreConfig values = read == null ? StoreConfig.of(Map.of()) : read.storeConfig();
      findings.addAll(checkup.look(values));
    }
    if (report != null) {
      findings.add(configuration(report));
    }
    boolean failed = findings.stream().anyMatch(finding -> finding.status() == Status.FAILED);
    print(findings, failed);
    return report != null && report.hasErrors() ? WRONG_CONFIG : failed ? 1 : 0;
  }

  /** All of the image; what concerns everybody first. */
  private static List<Checkup> checkups() {
    return ServiceLoader.load(Checkup.class, DoctorCommand.class.getClassLoader()).stream()
        .sorted(Comparator.comparing(provider -> !provider.type().equals(SystemCheckup.class)))
        .map(ServiceLoader.Provider::get)
        .toList();
  }

  private Finding configuration(ConfigReport report) {
    String found = config + ": " + report.errors() + " errors, " + report.warnings() + " warnings";
    String advice = "see: ucm config check " + config;
    if (report.hasErrors()) {
      return Finding.failed("configuration", found, advice);
    }
    return report.warnings() > 0
        ? Finding.warning("configuration", found, advice)
        : Finding.ok("configuration", found);
  }

  private void print(List<Finding> findings, boolean failed) {
    PrintWriter out = spec.commandLine().getOut();
    if (json) {
      Map<String, Object> data = new LinkedHashMap<>();
      data.put("ok", !failed);
      data.put("findings", findings.stream().map(DoctorCommand::data).toList());
      Json.print(out, data);
      return;
    }
    for (Finding finding : findings) {
      out.printf("%-7s  %s: %s%n", word(finding), finding.subject(), finding.found());
      if (!finding.advice().isEmpty()) {
        out.printf("%-7s  -> %s%n", "", finding.advice());
      }
    }
  }

  private static Map<String, Object> data(Finding finding) {
    Map<String, Object> data = new LinkedHashMap<>();
    data.put("status", word(finding));
    data.put("subject", finding.subject());
    data.put("found", finding.found());
    data.put("advice", finding.advice());
    return data;
  }

  private static String word(Finding finding) {
    return finding.status().name().toLowerCase(Locale.ROOT);
  }
}

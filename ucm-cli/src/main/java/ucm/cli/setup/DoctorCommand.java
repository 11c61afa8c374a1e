package ucm.cli.setup;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.admin.HealthCheck.Status;
import ucm.api.config.StoreConfig;
import ucm.cli.output.Columns;
import ucm.cli.output.Fields;
import ucm.cli.output.JsonCommand;
import ucm.cli.output.Progress;
import ucm.cli.runtime.Cleanup;
import ucm.cli.runtime.MetricsOptions;
import ucm.cli.runtime.PluginsOption;
import ucm.pipeline.catalog.BoundedCall;
import ucm.pipeline.catalog.BoundedCall.HangsException;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.ConfigReport;
import ucm.pipeline.config.UcmConfig;

/** {@code ucm doctor}: whether this machine has what UCM needs. */
@Command(
    name = "doctor",
    description = {
      "Looks whether this machine has what UCM needs, and says what to do where it has not.",
      "",
      "With --config, what its pipeline asks for is looked at: a part that is missing is a warning"
          + " or nothing at all without it, and a failure when the file asks for that part. Exit"
          + " code 1 when something failed, 2 when the file itself is wrong; warnings fail"
          + " nothing.",
      "",
      "Also with --config, a block is sent through the whole pipeline, in a folder of its own in"
          + " each of storage_backends: dumped, made durable, loaded by a second instance, compared"
          + " and removed. Run it as the user, and in the container, that the engines run in."
    })
public final class DoctorCommand extends JsonCommand {

  private static final int WRONG_CONFIG = 2;
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Map<Status, String> COLOURS =
      Map.of(Status.OK, "green", Status.WARNING, "yellow", Status.FAILED, "bold,red");

  private static final Columns<Finding> DATA =
      new Columns<Finding>()
          .data("status", DoctorCommand::word)
          .data("subject", Finding::subject)
          .data("found", Finding::found)
          .data("advice", Finding::advice);

  @Mixin private PluginsOption plugins = new PluginsOption();

  @Option(
      names = "--config",
      paramLabel = "FILE",
      description = "look at what the pipeline of this file needs")
  private @Nullable Path config;

  @Option(
      names = "--no-probe",
      description = "send no block through the pipeline; small files are written all the same")
  private boolean noProbe;

  private boolean hung;

  @Override
  public Integer call() throws InterruptedException {
    UcmConfig read = config == null ? null : UcmConfig.read(config);
    StoreCatalog catalog = plugins.catalog();
    ConfigReport report = read == null ? null : MetricsOptions.check(read, catalog);
    boolean isWrong = report != null && report.hasErrors();
    List<Finding> findings = new ArrayList<>();
    List<String> stages = stages(read, isWrong);
    Map<String, Object> suggested =
        catalog.suggestions(stages.subList(Math.min(1, stages.size()), stages.size()));
    // What concerns every pipeline first.
    Stream<HealthCheck> checks =
        catalog.healthChecks().stream()
            .sorted(Comparator.comparing(check -> !(check instanceof SystemHealthCheck)));
    for (HealthCheck check : checks.toList()) {
      // A fresh view for each: what one records in it is not the next one's.
      StoreConfig values = read == null ? StoreConfig.of(Map.of()) : read.storeConfig();
      findings.addAll(run(check, values.withSuggestions(suggested), stages, LIMIT));
    }
    if (report != null) {
      findings.add(configuration(report));
    }
    if (read != null && !isWrong) {
      boolean isLite = read.settings().useLite();
      if (isLite) {
        findings.add(
            Finding.warning(
                "mode",
                "use_lite is true: requests are counted, no block is kept, and store_pipeline is"
                    + " not looked at",
                "set use_lite: false to keep blocks"));
      }
      if (!noProbe && !hung && !isLite) {
        try (Cleanup cleanup = new Cleanup()) {
          findings.addAll(new PipelineProbe(read, catalog, cleanup).run());
        }
      }
    }
    boolean failed = findings.stream().anyMatch(finding -> finding.status() == Status.FAILED);
    print(
        () -> new Fields().with("ok", !failed).with("findings", DATA.data(findings)),
        () -> show(findings));
    return isWrong ? WRONG_CONFIG : failed ? 1 : 0;
  }

  /** Runs a check; that it does not come back, as a file system or a driver hangs, is a finding. */
  List<Finding> run(HealthCheck check, StoreConfig config, List<String> stages, Duration limit) {
    String name = check.getClass().getName();
    try {
      return BoundedCall.run(name, limit, () -> check.run(config, stages));
    } catch (HangsException e) {
      hung = true;
      return List.of(
          Finding.failed(
              name,
              "has not come back within " + limit.toSeconds() + " s",
              "something that it looks at hangs: a file system whose server does not answer, or a"
                  + " driver; see dmesg, and try ls on storage_backends"));
    } catch (RuntimeException | LinkageError | ServiceConfigurationError e) {
      return List.of(
          Finding.failed(name, "ended with " + e, "report this to who made that module"));
    }
  }

  boolean hung() {
    return hung;
  }

  /** The stages that an engine opens; of a file with errors those it names, if it can be told. */
  private static List<String> stages(@Nullable UcmConfig read, boolean isWrong) {
    if (read == null) {
      return List.of();
    }
    return isWrong
        ? read.findPipeline(new ArrayList<>()).map(PipelineSpec::stages).orElse(List.of())
        : read.openedPipeline().stages();
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

  private void show(List<Finding> findings) {
    boolean colours =
        Progress.isTerminal() && System.getenv().getOrDefault("NO_COLOR", "").isEmpty();
    Ansi ansi = colours ? Ansi.ON : Ansi.OFF;
    for (Finding finding : findings) {
      String padded = "%-7s".formatted(word(finding));
      String word = "@|" + COLOURS.get(finding.status()) + " " + padded + "|@";
      say(ansi.string(word) + "  " + finding.subject() + ": " + finding.found());
      if (!finding.advice().isEmpty()) {
        say(" ".repeat(7) + "  -> " + finding.advice());
      }
    }
  }

  private static String word(Finding finding) {
    return finding.status().name().toLowerCase(Locale.ROOT);
  }
}

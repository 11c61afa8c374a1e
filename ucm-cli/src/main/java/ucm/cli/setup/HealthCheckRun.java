package ucm.cli.setup;

import java.time.Duration;
import java.util.List;
import java.util.ServiceConfigurationError;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.BoundedCall;
import ucm.pipeline.catalog.BoundedCall.HangsException;

/**
 * Runs health checks: one that does not come back, because a file system or a driver hangs, becomes a finding.
 * Used by one thread.
 */
final class HealthCheckRun {

  private final Duration limit;
  private boolean hung;

  HealthCheckRun(Duration limit) {
    this.limit = limit;
  }

  boolean hung() {
    return hung;
  }

  List<Finding> run(HealthCheck check, StoreConfig config, List<String> stages) {
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
}

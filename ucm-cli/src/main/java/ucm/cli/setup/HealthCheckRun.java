package ucm.cli.setup;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import ucm.api.admin.HealthCheck;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.StoreConfig;

/**
 * Runs health checks, each on a thread of its own: one that does not come back, because a file system or a driver
 * hangs, becomes a finding, and its thread ends with the process. Used by one thread.
 */
final class HealthCheckRun {

  private final Duration limit;
  private int started;
  private boolean hung;

  HealthCheckRun(Duration limit) {
    this.limit = limit;
  }

  boolean hung() {
    return hung;
  }

  List<Finding> run(HealthCheck check, StoreConfig config, List<String> stages)
      throws InterruptedException {
    String name = check.getClass().getName();
    FutureTask<List<Finding>> task = new FutureTask<>(() -> check.run(config, stages));
    Thread.ofPlatform().daemon().name("ucm-doctor-check-" + started++).start(task);
    try {
      return task.get(limit.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      hung = true;
      return List.of(
          Finding.failed(
              name,
              "has not come back within " + limit.toSeconds() + " s",
              "something that it looks at hangs: a file system whose server does not answer, or a"
                  + " driver; see dmesg, and try ls on storage_backends"));
    } catch (ExecutionException e) {
      return List.of(
          Finding.failed(
              name, "ended with " + e.getCause(), "report this to who made that module"));
    }
  }
}

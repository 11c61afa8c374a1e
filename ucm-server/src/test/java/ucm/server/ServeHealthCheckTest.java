package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.admin.HealthCheck.Finding;
import ucm.api.config.StoreConfig;

final class ServeHealthCheckTest {

  @TempDir private Path folder;

  private static Finding look(Path socket) {
    List<Finding> findings = new ServeHealthCheck(socket).run(StoreConfig.of(Map.of()), List.of());
    assertThat(findings).hasSize(1);
    return findings.getFirst();
  }

  @Test
  void saysWhetherADaemonAnswers() throws Exception {
    Path socket = folder.resolve("run").resolve("ucm.sock");
    assertThat(look(socket).toString()).contains("none at " + socket, "an engine starts one");
    try (TestDaemon daemon = new TestDaemon(folder, 1 << 20)) {
      assertThat(look(daemon.socket).toString())
          .contains("process " + ProcessHandle.current().pid() + " serves 0 engines");
      // A client without the token is not admitted.
      Files.writeString(Daemon.tokenPath(daemon.socket), "other");
      assertThat(look(daemon.socket).toString()).contains("does not answer", "not admitted");
    }
  }
}

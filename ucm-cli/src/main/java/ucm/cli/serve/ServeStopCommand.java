package ucm.cli.serve;

import java.util.Map;
import picocli.CommandLine.Command;
import ucm.server.OperatorClient;

/** {@code ucm serve stop}: ends the daemon. */
@Command(
    name = "stop",
    description = {
      "Ends the daemon, and waits until what engines have saved is stored. An engine whose"
          + " connector may start a daemon starts another one."
    })
final class ServeStopCommand extends DaemonCommand {

  @Override
  public void run() {
    try (OperatorClient client = connect()) {
      client.stop();
    }
    print(() -> Map.of("stopped", true), () -> say("the daemon has ended"));
  }
}

package ucm.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** Runs the {@code ucm} command within this process. */
final class CommandRun {

  private CommandRun() {}

  record Ended(int exitCode, String out, String err) {

    JsonNode json() {
      return JsonMapper.builder().build().readTree(out);
    }

    String all() {
      return out + err;
    }
  }

  /** Runs the command to its end. */
  static Ended run(Object... args) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    String[] texts = Arrays.stream(args).map(Object::toString).toArray(String[]::new);
    int exitCode = Main.run(new PrintWriter(out, true), new PrintWriter(err, true), texts);
    return new Ended(exitCode, out.toString(), err.toString());
  }
}

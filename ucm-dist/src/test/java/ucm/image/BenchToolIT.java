package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** {@code tools/bench/run} with few blocks. No figure is judged here. */
class BenchToolIT {

  @TempDir private Path folder;

  @Test
  void everyRowIsMeasuredBesideItsLimits() throws Exception {
    Path out = run(0, "--shapes", "cp-1m", "--pause-us", "0,100", "--json");
    JsonNode rows = JsonMapper.builder().build().readTree(Files.readString(out));
    assertThat(rows.findValuesAsString("shape"))
        .contains("cp-1m", "cp-1m, pauses of 100 us")
        .hasSize(2 * 11);
    for (JsonNode row : rows) {
      assertThat(row.get("new").asDouble()).as("%s", row).isNotNegative();
      for (String limit : limits(row.get("metric").asString())) {
        assertThat(row.get(limit).asDouble()).as("%s", row).isPositive();
        assertThat(row.get("of " + limit).asDouble()).as("%s", row).isPositive();
      }
    }
    // It leaves nothing but what it printed.
    try (var left = Files.list(folder)) {
      assertThat(left).containsExactlyInAnyOrder(out, folder.resolve("err"));
    }
  }

  private static List<String> limits(String metric) {
    return switch (metric) {
      case "wait", "durable", "hot", "cold" -> List.of("plain", "checked", "asleep");
      case "unknown_ids_s", "prefix_unknown_calls_s" -> List.of("plain", "asleep");
      case "known_ids_s", "prefix_known_ids_s" -> List.of("plain");
      default -> List.of();
    };
  }

  @Test
  void theFirstLoadOfAProcessIsMeasured() throws Exception {
    Path out = run(0, "--first", "--json");
    JsonNode rows = JsonMapper.builder().build().readTree(Files.readString(out));
    assertThat(rows.findValuesAsString("metric")).containsExactly("first_ms", "open_ms");
    assertThat(rows.get(0).get("new").asDouble()).isPositive();
  }

  /** The negative control: a store of somebody else's that gives wrong bytes. */
  @Test
  void aStoreThatLoadsWrongBytesIsFoundOut() throws Exception {
    Path original = folder.resolve("original");
    Files.writeString(
        original,
        """
        #!/usr/bin/env python3
        import json, sys
        wrong = {"wait": 1, "durable": 1, "load": 1, "wrong_blocks": 3}
        print(json.dumps({"op": "ready"}), flush=True)
        for line in sys.stdin:
            print(json.dumps({"op": line.split()[0], **wrong}), flush=True)
        """);
    assertThat(original.toFile().setExecutable(true)).isTrue();
    run(1, "--shapes", "p-64k", "--original", original);
    assertThat(folder.resolve("err")).content().contains("original", "3 blocks were wrong");
  }

  private Path run(int expected, Object... more) throws Exception {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/gcc")), "needs gcc (.ci/packages)");
    Path out = folder.resolve("out");
    List<Object> command =
        new ArrayList<>(List.of("/usr/bin/python3", Path.of("..", "tools", "bench", "run")));
    command.addAll(List.of(UcmProcess.IMAGE, "--small", 16, "--rounds", 1, "--warm", 1));
    command.addAll(List.of("--idle", 0.1, "--folder", folder));
    command.addAll(List.of(more));
    ProcessBuilder builder =
        new ProcessBuilder(command.stream().map(String::valueOf).toList())
            .redirectOutput(out.toFile())
            .redirectError(folder.resolve("err").toFile());
    builder.environment().put("UCM_JAVA_OPTS", UcmProcess.JAVA_OPTIONS);
    assertThat(builder.start().waitFor())
        .as(() -> "its exit code; see " + folder.resolve("err"))
        .isEqualTo(expected);
    return out;
  }
}

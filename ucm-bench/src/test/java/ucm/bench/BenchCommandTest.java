package ucm.bench;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import ucm.cli.Main;

/** What {@code ucm bench} says before it measures anything. */
class BenchCommandTest {

  @TempDir private Path folder;

  @ParameterizedTest
  @ValueSource(strings = {"bench", "bench store", "bench layerwise"})
  void explainsItself(String command) {
    Ended help = run((command + " --help").split(" "));
    assertThat(help.exitCode()).as(help.err()).isZero();
    assertThat(help.out()).startsWith("Usage: ucm " + command).contains("--help");
  }

  @Test
  void refusesStoresThatCannotBeMeasured() throws IOException {
    Path fake = yaml("fake.yaml", "Fake");
    refusesStore("keeps metadata only", "--config", fake, "--dir", folder);
    refusesStore("are free", "--blocks", 10_000_000, "--dir", folder);
    refusesStore("are available", "--buffer-gb", 1_000_000, "--dir", folder);
    refusesStore("--repeat", "--repeat", 0, "--dir", folder);
    refusesStore("--in-flight", "--in-flight", 0, "--dir", folder);
    refusesStore("--block-size", "--shard-size", 4096, "--dir", folder);
    refusesStore("whole number of shards", "--block-size", 100, "--shard-size", 64);
    refusesStore("Posits", "--config", yaml("wrong.yaml", "Cache|Posits"));
    assertThat(entries()).containsExactlyInAnyOrder("fake.yaml", "wrong.yaml");
  }

  @Test
  void refusesToBeginWithoutACommand() {
    Ended bench = run("bench");
    assertThat(bench.exitCode()).isEqualTo(2);
    assertThat(bench.err()).contains("name a command: store or layerwise");
  }

  private static void refusesStore(String expected, Object... args) {
    refuses(expected, Stream.concat(Stream.of("bench", "store"), Stream.of(args)));
  }

  private static void refuses(String expected, Stream<Object> command) {
    Ended bench = run(command.map(Object::toString).toArray(String[]::new));
    assertThat(bench.exitCode()).as(bench.out() + bench.err()).isEqualTo(2);
    assertThat(bench.err()).contains(expected).doesNotContain("Exception", "\tat ");
  }

  private Path yaml(String name, String pipeline) throws IOException {
    String text =
        """
        ucm_connectors:
          - ucm_connector_name: "UcmPipelineStore"
            ucm_connector_config:
              store_pipeline: "%s"
        """
            .formatted(pipeline);
    String directories =
        pipeline.contains("Posi") ? "      storage_backends: \"" + folder + "\"\n" : "";
    return Files.writeString(folder.resolve(name), text + directories);
  }

  private String[] entries() throws IOException {
    try (Stream<Path> left = Files.list(folder)) {
      return left.map(path -> path.getFileName().toString()).toArray(String[]::new);
    }
  }

  private record Ended(int exitCode, String out, String err) {}

  private static Ended run(String... command) {
    StringWriter out = new StringWriter();
    StringWriter err = new StringWriter();
    int exitCode = Main.run(new PrintWriter(out), new PrintWriter(err), command);
    return new Ended(exitCode, out.toString(), err.toString());
  }
}

package ucm.example.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The engine as README starts it: modules, and a process for each run. */
class EngineIT {

  @TempDir private Path folder;

  private List<String> run(String mode) throws IOException, InterruptedException {
    Path output = folder.resolve("output");
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--module-path",
                System.getProperty("engine.modules"),
                "--enable-native-access=com.sun.jna,ucm.store.common",
                "--module",
                "ucm.example.engine/ucm.example.engine.Main",
                folder.resolve("blocks").toString(),
                "320",
                mode)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    boolean ended = process.waitFor(5, TimeUnit.MINUTES);
    if (!ended) {
      process.destroyForcibly();
    }
    String text = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(ended).as(text).isTrue();
    assertThat(process.exitValue()).as(text).isZero();
    return text.lines().toList();
  }

  private static String line(List<String> lines, String begin) {
    return lines.stream().filter(line -> line.startsWith(begin)).findFirst().orElseThrow();
  }

  @ParameterizedTest
  @ValueSource(strings = {"layerwise", "direct"})
  void aSecondProcessComputesOneTokenAndGetsTheSameBits(String mode)
      throws IOException, InterruptedException {
    List<String> first = run(mode);
    List<String> second = run(mode);
    assertThat(first).contains("prompt tokens computed: 320");
    assertThat(second).contains("prompt tokens loaded: 319", "prompt tokens computed: 1");
    assertThat(line(second, "logits")).isEqualTo(line(first, "logits"));
    assertThat(line(second, "generated")).isEqualTo(line(first, "generated"));
    assertThat(second)
        .anyMatch(
            line ->
                line.endsWith(
                    "request_id: request-1, total_blocks_num: 20, hit hbm: 0, hit external: 20"));
  }
}

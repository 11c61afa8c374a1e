package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What authors of stores are promised: the API of the baseline, and modules of the JDK. */
class PluginPromiseIT {

  private static final Path BASELINE = Path.of("../ucm-api/baseline/ucm-api-0.2.0.jar");

  @TempDir private Path folder;

  @Test
  void usesAPluginCompiledAgainstTheBaseline() throws IOException {
    assertThat(BASELINE).exists();
    Path plugins = folder.resolve("plugins");
    PluginJar.buildHello(folder.resolve("plugin"), plugins.resolve("hello.jar"), BASELINE);
    assertThat(UcmProcess.run("stores", "--plugins", plugins).out())
        .contains("Hello", "ucm.example.hello");
    Path config =
        UcmYaml.in(
            folder,
            "store_pipeline: \"Cache|Hello\"",
            "hello_directory: \"" + folder.resolve("blocks") + "\"",
            "cache_buffer_capacity_gb: 0.1");
    UcmProcess.Ended demo =
        UcmProcess.run(
                "demo",
                "--config",
                config,
                "--plugins",
                plugins,
                "--prompts",
                1,
                "--input-len",
                1280)
            .requireOk();
    assertThat(demo.out()).contains("Round 2 found 10 of 10 blocks");
  }

  @Test
  void tellsAuthorsWhichModulesOfTheJdkThereAre() throws Exception {
    Process java =
        new ProcessBuilder(UcmProcess.IMAGE.resolve("bin/java").toString(), "--list-modules")
            .start();
    List<String> there =
        UcmProcess.finish(java)
            .out()
            .lines()
            .map(module -> module.substring(0, module.indexOf('@')))
            .filter(module -> module.startsWith("java.") || module.startsWith("jdk."))
            .toList();
    String page = Files.readString(Path.of("../docs/plugins.md"));
    int list = page.indexOf("```text\n") + "```text\n".length();
    assertThat(page.substring(list, page.indexOf("```", list)).strip().split("\\s+"))
        .containsExactlyInAnyOrderElementsOf(there);
  }
}

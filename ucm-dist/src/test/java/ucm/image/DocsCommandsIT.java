package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.TraceOptions;

/** README.md and the pages of docs/ are followed, command by command, with the image. */
class DocsCommandsIT {

  /** {@link StoreExamplesIT} follows it. */
  private static final String PLUGINS = "docs/plugins.md";

  private static final String GPU = "docs/gpu.md";

  private static final String VALKEY = "docs/valkey.md";

  /** Has the wheel installed. */
  private static final String OPERATOR = "docs/operator.md";

  /** What a page takes for granted. */
  private static final Map<String, String> GIVEN =
      Map.of(
          OPERATOR,
          "ln -s '%s' ucm-dist\n".formatted(UcmProcess.IMAGE.resolve("../..").toAbsolutePath()),
          "docs/planner.md",
          "ln -s '%s' ucm-dist\n".formatted(UcmProcess.IMAGE.resolve("../..").toAbsolutePath()),
          "docs/cache.md",
          "ucm trace generate --requests 40 -o TRACE\n",
          VALKEY,
          "ucm plugins enable valkey\n",
          GPU,
          aFileFor("/mnt/blocks") + "mv made.yaml ucm.yaml\n",
          "docs/operations.md",
          """
          ucm trace generate --requests 60 -o requests.jsonl
          %s
          damaged=$(find /mnt/cache -type f -size +16k | head -n 1)
          printf damaged | dd of="$damaged" conv=notrunc status=none
          """
              .formatted(aCacheIn("/mnt/cache")),
          "docs/performance.md",
          aFileFor("/mnt/blocks")
              + "mv made.yaml ucm.yaml\n"
              + "sed 's/Cache.Posix/Posix|Nfs/; /buffer/d' ucm.yaml > tiers.yaml\n"
              + "echo '  posix_storage_backends: /mnt/local' >> tiers.yaml\n",
          "docs/traces.md",
          """
          ucm trace generate --requests 200 -o conversation_trace.jsonl
          ucm trace generate --requests 60 --to bailian -o bailian.jsonl
          ucm trace generate --requests 60 --to ucm -o engine.log
          cp engine.log node1.log
          ucm trace generate --requests 60 --seed 2 --to ucm -o node2.log
          """);

  private static final Path PYTHON = Path.of("/usr/bin/python3");

  @TempDir private Path folder;

  private static String aFileFor(String directory) {
    return """
    cat > made.yaml <<END
    ucm_connector_name: "UcmPipelineStore"
    ucm_connector_config:
      store_pipeline: "Cache|Posix"
      storage_backends: "%s"
      cache_buffer_capacity_gb: 0.1
    END
    """
        .formatted(directory);
  }

  private static String aCacheIn(String directory) {
    return aFileFor(directory) + "ucm trace replay requests.jsonl --config made.yaml";
  }

  private static List<String> pages() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("../docs"))) {
      return Stream.concat(
              Stream.of("README.md"),
              files
                  .map(file -> "docs/" + file.getFileName())
                  .filter(name -> name.endsWith(".md"))
                  .sorted())
          .toList();
    }
  }

  private static Stream<String> pagesToFollow() throws IOException {
    return pages().stream().filter(page -> !page.equals(PLUGINS));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("pagesToFollow")
  void everyCommandDoesWhatThePageSays(String page) throws Exception {
    Map<String, String> environment = new TreeMap<>();
    if (page.equals(OPERATOR)) {
      assumeTrue(
          Files.isExecutable(PYTHON) && canMakeVenvs(),
          "needs the Debian packages python3 and python3-venv (.ci/packages)");
      // No daemon of another test is there.
      environment.put("UCM_SOCKET", folder.resolve("none/ucm.sock").toString());
    }
    if (page.equals(VALKEY)) {
      // Not those of the image, which other tests run.
      Path plugins = Files.createDirectory(folder.resolve("plugins"));
      environment.put("UCM_PLUGINS", plugins.toString());
    }
    if (page.equals(GPU)) {
      SimulatedDriver driver = new SimulatedDriver(folder.resolve("driver"));
      environment.putAll(driver.environment("SIM_CUDA_DEVICES", "2"));
    }
    DocsReader reader = new DocsReader(folder.resolve("reader"), UcmProcess.IMAGE, environment);
    if (GIVEN.containsKey(page)) {
      reader.prepare(GIVEN.get(page));
    }
    runLiteEngine(reader.workingDirectory().resolve("log"));
    for (DocsBlock block : DocsBlock.of(page)) {
      reader.follow(block);
    }
  }

  private static boolean canMakeVenvs() throws Exception {
    return new ProcessBuilder(PYTHON.toString(), "-c", "import ensurepip, venv").start().waitFor()
        == 0;
  }

  /** What an engine in lite mode leaves in its folder of traces. */
  private static void runLiteEngine(Path folder) {
    EngineSpec spec =
        new EngineSpec("dp0", "m", "torch.bfloat16", 1, false, 16, KvLayout.uniform(2, 64, 64));
    UcmConfig config =
        UcmConfig.of("Fake", Map.of()).withTopLevel(Map.of("use_lite", true), "test");
    try (SchedulerConnector scheduler =
        ConnectorSetup.of(config, StoreCatalog.find(), spec)
            .withTraces(new TraceOptions(folder, 1 << 20, 2))
            .scheduler()) {
      int[] prompt = IntStream.range(0, 64).toArray();
      for (String id : new String[] {"a", "b", "c", "d"}) {
        scheduler.matchedTokens(PromptRequest.of(id, prompt, 1), 0);
      }
    }
  }

  @Test
  void noCommandHidesInABlockThatIsNotRun() throws IOException {
    for (String page : pages()) {
      assertThat(DocsBlock.of(page))
          .as("blocks that should be sh or console")
          .noneMatch(DocsBlock::looksLikeCommands);
    }
  }

  @Test
  void whatIsLeftOutIsStillThere() throws IOException {
    for (Map.Entry<String, Map<String, String>> leftOut : DocsReader.LEFT_OUT.entrySet()) {
      assertThat(DocsBlock.of(leftOut.getKey()).stream().flatMap(b -> b.commands().stream()))
          .containsAll(leftOut.getValue().keySet());
    }
  }
}

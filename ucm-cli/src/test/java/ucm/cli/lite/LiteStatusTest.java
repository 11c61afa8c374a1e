package ucm.cli.lite;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import ucm.cli.Main;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.TraceOptions;

/** {@code ucm lite status} over what an engine in lite mode writes. */
public class LiteStatusTest {

  @TempDir private Path folder;

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  private int status(Object... more) {
    String[] args =
        Stream.concat(Stream.of("lite", "status"), Arrays.stream(more).map(Object::toString))
            .toArray(String[]::new);
    return Main.run(new PrintWriter(out, true), new PrintWriter(err, true), args);
  }

  /** What an engine in lite mode leaves in its folder of traces. */
  private static void runEngine(Path folder) {
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
  void showsHitRateAndCurveOfAnEngine() {
    runEngine(folder);
    assertThat(status(folder)).as(err.toString()).isZero();
    assertThat(out.toString())
        .containsPattern("LITE +dp0")
        .containsPattern("hit rate so far +75.00%")
        .containsPattern("ideal +75.00%")
        .contains(", ended", "CAPACITY, MTOKENS");
  }

  @Test
  void printsJsonForMachines() {
    runEngine(folder);
    assertThat(status(folder, "--json")).as(err.toString()).isZero();
    JsonNode engine = JsonMapper.builder().build().readTree(out.toString()).get(0);
    assertThat(engine.get("state").asString()).isEqualTo("ended");
    assertThat(engine.get("requests").asInt()).isEqualTo(4);
    assertThat(engine.get("external_hit_rate").asDouble()).isEqualTo(0.75);
    assertThat(engine.get("lru")).hasSize(9);
  }

  @Test
  void tellsAKilledEngineFromARunningOne() throws IOException {
    runEngine(folder);
    Path file;
    try (var files = Files.list(folder.resolve("lite"))) {
      file = files.filter(one -> one.toString().endsWith(".json")).findFirst().orElseThrow();
    }
    String running = Files.readString(file).replace("\"running\":false", "\"running\":true");
    Files.writeString(file, running);
    assertThat(status(folder)).isZero();
    assertThat(out.toString()).contains(", running");
    Files.writeString(file, running.replaceAll("\"pid\":[0-9]+", "\"pid\":999999999"));
    assertThat(status(folder)).isZero();
    assertThat(out.toString()).contains("or killed");
  }

  @Test
  void saysWhereItLookedWhenThereIsNothing() {
    assertThat(status(folder)).isEqualTo(2);
    assertThat(err.toString()).contains(folder.resolve("lite").toString(), "use_lite");
  }

  @Test
  void refusesAFileThatIsNoStatus() throws IOException {
    Path strange = Files.createDirectories(folder.resolve("lite")).resolve("x.json");
    Files.writeString(strange, "{\"lru\": 3");
    assertThat(status(folder)).isEqualTo(1);
    assertThat(err.toString()).contains("x.json is no status").doesNotContain("at ucm.");
  }
}

package ucm.cli.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.LoggerFactory;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.pipeline.Pipeline;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.hash.BlockHasher;

/** The lines that tools for the original's logs look for, as whole lines. */
class LogLinesTest {

  private static final Duration PATIENCE = Duration.ofMinutes(1);
  private static final String HEAD =
      "\\[\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{6}]\\[UC]\\[";
  private static final String TAIL = " \\[" + ProcessHandle.current().pid() + ",\\d+]\n";
  private static final String TASK_ID = "task\\(\\d+,";
  private static final String COST = " finished, cost \\d+\\.\\d+ms\\.";

  @TempDir private Path folder;

  private final Lines lines = new Lines();
  private Logger logger;

  /** Keeps each line as it would be written. */
  private static final class Lines extends AppenderBase<ILoggingEvent> {
    private final LogSetup.LogLine layout = new LogSetup.LogLine(() -> "");
    private final List<String> lines = new CopyOnWriteArrayList<>();

    @Override
    protected void append(ILoggingEvent event) {
      lines.add(layout.doLayout(event));
    }

    void requireOne(String level, String message) {
      assertThat(lines)
          .as(message)
          .filteredOn(line -> line.matches(HEAD + level + "] " + message + TAIL))
          .hasSize(1);
    }
  }

  @BeforeEach
  void listen() {
    logger = (Logger) LoggerFactory.getLogger("ucm");
    logger.setLevel(Level.DEBUG);
    logger.setAdditive(false);
    lines.setContext(logger.getLoggerContext());
    lines.start();
    logger.addAppender(lines);
  }

  @AfterEach
  void leave() {
    logger.detachAppender(lines);
    logger.setAdditive(true);
    logger.setLevel(null);
  }

  private UcmConfig config() {
    return UcmConfig.of(
        "Cache|Posix",
        Map.of("storage_backends", folder.toString(), "cache_buffer_capacity_gb", 0.01));
  }

  @Test
  void storesLogEachTaskAtDebug() throws InterruptedException {
    BlockLayout layout = BlockLayout.uniform(4096, 8192, 16384);
    BlockIds ids = BlockIds.of(0x1234, 0x5678);
    UcmConfig config = config().with(EngineConfig.of(layout), "test");
    try (EngineMemory memory = new EngineMemory(layout, 1)) {
      memory.fill(ids, 0, 1);
      try (Pipeline pipeline = Pipeline.open(config, StoreCatalog.find())) {
        pipeline.dump(memory.transfer(ids, 0, 1)).await(PATIENCE).requireOk();
        assertThat(pipeline.flush(PATIENCE).ok()).isTrue();
      }
      try (Pipeline pipeline = Pipeline.open(config, StoreCatalog.find())) {
        pipeline.load(memory.transfer(ids, 0, 1)).await(PATIENCE).requireOk();
      }
    }
    for (String end : List.of(" dispatching\\.", COST)) {
      lines.requireOne("D", "Cache " + TASK_ID + "DUMP,2,16384\\)" + end);
      lines.requireOne("D", "Cache " + TASK_ID + "LOAD,2,16384\\)" + end);
      lines.requireOne("D", "Posix " + TASK_ID + "Cache2Backend,2,16384\\)" + end);
      lines.requireOne("D", "Posix " + TASK_ID + "Backend2Cache,2,16384\\)" + end);
    }
  }

  @Test
  void theConnectorLogsEachRequestAndEachDecisionAtInfo() {
    EngineSpec spec =
        new EngineSpec("e", "m", "torch.bfloat16", 1, false, 16, KvLayout.uniform(1, 64));
    UcmConfig config = config().withTopLevel(Map.of("persist_token_threshold", 20), "test");
    try (SchedulerConnector scheduler =
        ConnectorSetup.of(config, StoreCatalog.find(), spec).scheduler()) {
      int[] prompt = IntStream.range(0, 50).toArray();
      scheduler.matchedTokens(PromptRequest.of("cmpl-1", prompt, 1), 16);
      scheduler.matchedTokens(PromptRequest.of("cmpl-2", new int[19], 1), 0);
    }
    lines.requireOne(
        "I",
        "request_id: cmpl-1, total_blocks_num: 3, hit hbm: 1, hit external: 0, total tokens: 50");
    lines.requireOne(
        "I",
        "request_id: cmpl-2, 19 tokens are fewer than persist_token_threshold 20: look-up, load and"
            + " dump are skipped");
  }

  @Test
  void theConnectorLogsWhatItLeavesAloneAtInfo() throws InterruptedException {
    EngineSpec spec =
        new EngineSpec("e", "m", "torch.bfloat16", 1, false, 16, KvLayout.uniform(1, 4096));
    int[] prompt = IntStream.range(0, 50).toArray();
    BlockIds ids = BlockHasher.of("m", 1, "torch.bfloat16").hash(prompt, 16);
    BlockLayout layout = spec.kv().blockLayout();
    ConnectorSetup capped = setup(spec, Map.of("hit_ratio", 0.5));
    ConnectorSetup demanding = setup(spec, Map.of("load_tokens_threshold", 48));
    try (EngineMemory memory = new EngineMemory(layout, 3);
        Pipeline pipeline = capped.openPipeline(0)) {
      memory.fill(ids, 0, 3);
      pipeline.dump(memory.transfer(ids, 0, 3)).await(PATIENCE).requireOk();
      try (SchedulerConnector scheduler = capped.scheduler(pipeline)) {
        assertThat(scheduler.matchedTokens(PromptRequest.of("cmpl-3", prompt, 1), 0)).isEqualTo(16);
      }
      try (SchedulerConnector scheduler = demanding.scheduler(pipeline)) {
        assertThat(scheduler.matchedTokens(PromptRequest.of("cmpl-4", prompt, 1), 0)).isZero();
      }
    }
    lines.requireOne(
        "I",
        "request_id: cmpl-3, total_blocks_num: 3, hit hbm: 0, hit external: 3, total tokens: 50");
    lines.requireOne(
        "I",
        "request_id: cmpl-3, hit_ratio 0\\.5 of 50 prompt tokens: 1 of 3 external hit blocks are"
            + " used");
    lines.requireOne(
        "I",
        "request_id: cmpl-4, 48 external hit tokens do not exceed load_tokens_threshold 48: they"
            + " are not loaded");
  }

  private ConnectorSetup setup(EngineSpec spec, Map<String, Object> top) {
    return ConnectorSetup.of(config().withTopLevel(top, "test"), StoreCatalog.find(), spec);
  }
}

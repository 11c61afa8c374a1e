package ucm.image;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.lite.trace.TraceReader;
import ucm.lite.trace.TraceRequest;
import ucm.lite.trace.TraceVisitor;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.SchedulerConnector;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.statistics.TraceOptions;
import ucm.pipeline.hash.BlockHasher;

/** What the connector records, the trace reader reads, over as many files as there are. */
class ConnectorTraceTest {

  private static final int BLOCK_TOKENS = 16;

  @TempDir private Path folder;

  @Test
  void theTraceReaderReadsWhatTheConnectorRecords() {
    EngineSpec spec =
        new EngineSpec(
            "dp 0/1", "m", "torch.bfloat16", 2, false, BLOCK_TOKENS, KvLayout.uniform(2, 64, 64));
    UcmConfig config =
        UcmConfig.of("Fake", Map.of())
            .withTopLevel(Map.of("enable_record_traces", true, "use_lite", true), "test");
    int requests = 30;
    try (SchedulerConnector scheduler =
        ConnectorSetup.of(config, StoreCatalog.find(), spec)
            .withTraces(new TraceOptions(folder, 2000, 100))
            .scheduler()) {
      for (int i = 0; i < requests; i++) {
        scheduler.matchedTokens(PromptRequest.of("cmpl-" + i, prompt(i), i), 0);
      }
    }
    assertThat(folder).isDirectoryContaining(file -> file.toString().endsWith("000002.log.gz"));
    List<TraceRequest> read = new ArrayList<>();
    new TraceReader()
        .read(
            List.of(folder.toString()),
            new TraceVisitor() {
              @Override
              public void request(TraceRequest request) {
                read.add(request);
              }
            });
    assertThat(read).hasSize(requests);
    for (int i = 0; i < requests; i++) {
      TraceRequest request = read.get(i);
      assertThat(request.requestId()).isEqualTo("cmpl-" + i);
      assertThat(request.inputTokens()).isEqualTo(prompt(i).length);
      assertThat(request.outputTokens()).isEqualTo(i);
      assertThat(request.blockTokens()).isEqualTo(BLOCK_TOKENS);
      assertThat(request.ids())
          .isEqualTo(BlockHasher.of("m", 2, "torch.bfloat16").hash(prompt(i), BLOCK_TOKENS));
    }
  }

  private static int[] prompt(int i) {
    return IntStream.range(i, i + 40 + 7 * i).toArray();
  }
}

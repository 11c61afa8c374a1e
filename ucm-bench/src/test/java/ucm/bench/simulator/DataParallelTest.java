package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.bench.simulator.TestRequests.BLOCK_TOKENS;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import ucm.cli.runtime.EngineMemory;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.hash.BlockHasher;

/**
 * Data-parallel instances of one model on one node: the same block ids, the same directories, ranks that
 * share a buffer within an instance. Every loaded byte is compared.
 */
class DataParallelTest {

  private static final int RANKS = 2;
  private static final int BLOCKS = 64;
  private static final KvLayout LAYOUT = KvLayout.uniform(3, 4096);

  @TempDir private Path folder;
  private final List<EngineMemory> memory = new ArrayList<>();

  @AfterEach
  void freeMemory() {
    memory.forEach(EngineMemory::close);
  }

  private static String name(int instance) {
    return "dp-" + ProcessHandle.current().pid() + "-" + instance;
  }

  private ServeEngine engine(int instance) {
    EngineSpec spec =
        new EngineSpec(
            name(instance), "model", "torch.bfloat16", RANKS, true, BLOCK_TOKENS, LAYOUT);
    UcmConfig config =
        UcmConfig.of(
            "Cache|Posix",
            Map.of(
                "storage_backends",
                folder.toString(),
                "share_buffer_enable",
                true,
                "cache_buffer_capacity_gb",
                0.01));
    List<EngineMemory> pages = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      pages.add(new EngineMemory(LAYOUT.blockLayout(), 0, BLOCKS));
    }
    memory.addAll(pages);
    BlockHasher hasher = BlockHasher.of(spec.model(), RANKS, spec.dtype());
    return new ServeEngine(
        ConnectorSetup.of(config, StoreCatalog.find(), spec), spec, hasher, pages);
  }

  /** Prompts of five full blocks; those of one number are the same in every instance. */
  private static List<ServeRequest> requests(int first, int count) {
    return IntStream.range(first, first + count)
        .mapToObj(i -> TestRequests.request("r" + i, 1000 * i, 21, 2))
        .toList();
  }

  private static ServeResult serve(ServeEngine engine, int first, int count) {
    try {
      ServeResult result =
          engine.run(
              new EnginePlan(BLOCKS, BLOCK_TOKENS, 64, 8, false),
              ComputeModel.FREE,
              requests(first, count),
              _ -> {});
      engine.flush(Duration.ofSeconds(60));
      return result;
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void instancesServeTheSamePromptsAtOnceAndOneOutlivesTheOther()
      throws InterruptedException, ExecutionException {
    try (ServeEngine second = engine(1)) {
      try (ServeEngine first = engine(0)) {
        // Both dump blocks of the same ids, at the same time, into the same directory.
        CompletableFuture<ServeResult> beside =
            CompletableFuture.supplyAsync(() -> serve(first, 0, 8));
        ServeResult result = serve(second, 0, 8);
        assertThat(result.served()).hasSize(8);
        assertThat(result.failedBlocks()).isZero();
        assertThat(beside.get().served()).hasSize(8);
        assertThat(beside.get().failedBlocks()).isZero();
        ServeResult own = serve(first, 20, 3);
        assertThat(own.savedBlocks()).isEqualTo(15);
      }
      ServeResult other = serve(second, 20, 3);
      assertThat(other.loadedBlocks()).as("what only the first had stored").isEqualTo(15);
      assertThat(serve(second, 0, 8).loadedBlocks()).isEqualTo(40);
    }
  }
}

package ucm.bench.simulator;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static ucm.bench.simulator.TestRequests.BLOCK_TOKENS;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import ucm.api.Store;
import ucm.cli.runtime.EngineMemory;
import ucm.cli.runtime.EngineMemory.WrongBytesException;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.config.UcmConfig;
import ucm.pipeline.connector.ConnectorSetup;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.pipeline.hash.BlockHasher;
import ucm.testkit.fault.Fault;
import ucm.testkit.fault.Fault.Call;
import ucm.testkit.fault.FaultyStore;
import ucm.testkit.fault.MemoryStore;

/** The engine with its threads and bytes, over a plain store. */
class ServeEngineTest {

  private static final int BLOCKS = 64;

  private final MemoryStore.Volume volume = new MemoryStore.Volume();
  private final List<EngineMemory> memory = new ArrayList<>();

  @AfterEach
  void freeMemory() {
    memory.forEach(EngineMemory::close);
  }

  private static EngineSpec spec(int ranks, boolean mla) {
    KvLayout layout = mla ? KvLayout.uniform(3, 100) : KvLayout.uniform(3, 96, 96);
    return new EngineSpec("serve", "model", "torch.bfloat16", ranks, mla, BLOCK_TOKENS, layout);
  }

  private ServeEngine engine(EngineSpec spec, boolean layerwise, Supplier<Store> store) {
    for (int rank = memory.size(); rank < spec.tpSize(); rank++) {
      memory.add(new EngineMemory(spec.kv().blockLayout(), spec.mla() ? 0 : rank, BLOCKS));
    }
    UcmConfig config =
        UcmConfig.of("Memory", Map.of()).withTopLevel(Map.of("use_layerwise", layerwise), "test");
    BlockHasher hasher = BlockHasher.of(spec.model(), spec.tpSize(), spec.dtype());
    return new ServeEngine(
        ConnectorSetup.of(config, StoreCatalog.of(Map.of("Memory", store)), spec),
        spec,
        hasher,
        memory);
  }

  private Store plain() {
    return new MemoryStore(volume);
  }

  private static EnginePlan plan(int blocks) {
    return new EnginePlan(blocks, BLOCK_TOKENS, 16, 8, false);
  }

  /** Three requests of 21 tokens, five full blocks each. */
  private static List<ServeRequest> requests(int output) {
    return IntStream.range(0, 3)
        .mapToObj(i -> TestRequests.request("r" + i, 1000 * i, 21, output))
        .toList();
  }

  @ParameterizedTest
  @CsvSource({"1,false,true", "1,false,false", "3,false,true", "3,false,false", "2,true,true"})
  void loadsWhatAnEngineBeforeItHasStored(int ranks, boolean mla, boolean layerwise)
      throws InterruptedException {
    EngineSpec spec = spec(ranks, mla);
    try (ServeEngine first = engine(spec, layerwise, this::plain)) {
      ServeResult result = first.run(plan(BLOCKS), ComputeModel.FREE, requests(2), _ -> {});
      assertThat(result.savedBlocks()).isEqualTo(15);
      assertThat(result.loadedBlocks()).isZero();
      first.flush(Duration.ofSeconds(30));
    }
    assertThat(volume.size()).isEqualTo(15 * spec.parts());
    try (ServeEngine second = engine(spec, layerwise, this::plain)) {
      List<Integer> finished = new ArrayList<>();
      ServeResult result = second.run(plan(BLOCKS), ComputeModel.FREE, requests(2), finished::add);
      assertThat(result.loadedBlocks()).isEqualTo(15);
      assertThat(result.externalTokens()).isEqualTo(60);
      assertThat(result.savedBlocks()).isZero();
      assertThat(result.failedBlocks()).isZero();
      assertThat(finished.getLast()).isEqualTo(3);
    }
  }

  @Test
  void preemptedRequestsComeBackAndLoadWhatTheyHadComputed() throws InterruptedException {
    try (ServeEngine engine = engine(spec(2, false), true, this::plain)) {
      ServeResult result = engine.run(plan(13), ComputeModel.FREE, requests(20), _ -> {});
      assertThat(result.served()).hasSize(3);
      assertThat(result.preemptions()).isPositive();
      assertThat(result.loadedBlocks()).isPositive();
      assertThat(result.externalTokens()).as("nothing was there at first").isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({"1,true", "1,false", "2,true", "2,false"})
  void blocksThatCannotBeLoadedAreComputed(int ranks, boolean layerwise)
      throws InterruptedException {
    EngineSpec spec = spec(ranks, false);
    try (ServeEngine first = engine(spec, layerwise, this::plain)) {
      first.run(plan(BLOCKS), ComputeModel.FREE, requests(1), _ -> {});
      first.flush(Duration.ofSeconds(30));
    }
    Supplier<Store> faulty =
        () ->
            new FaultyStore(plain(), 5)
                .rate(Call.LOAD, Fault.CORRUPT, 0.1)
                .rate(Call.LOAD, Fault.MISS, 0.1);
    try (ServeEngine second = engine(spec, layerwise, faulty)) {
      ServeResult result = second.run(plan(BLOCKS), ComputeModel.FREE, requests(3), _ -> {});
      assertThat(result.served()).hasSize(3);
      assertThat(result.failedBlocks()).isPositive();
      assertThat(result.loadedBlocks()).isPositive();
    }
  }

  @Test
  void wrongByteStopsTheRun() throws InterruptedException {
    EngineSpec spec = spec(1, false);
    try (ServeEngine first = engine(spec, true, this::plain)) {
      first.run(plan(BLOCKS), ComputeModel.FREE, requests(1), _ -> {});
      first.flush(Duration.ofSeconds(30));
    }
    memory.removeFirst().close();
    // Expects another part of each block than was stored.
    memory.add(new EngineMemory(spec.kv().blockLayout(), 1, BLOCKS));
    try (ServeEngine second = engine(spec, true, this::plain)) {
      assertThatThrownBy(() -> second.run(plan(BLOCKS), ComputeModel.FREE, requests(1), _ -> {}))
          .isInstanceOf(WrongBytesException.class)
          .hasMessageContaining("was loaded with a wrong byte: part 1, tensor 0, offset 0");
    }
  }

  @Test
  void timeOfMakingAndComparingBytesDoesNotCount() throws InterruptedException {
    try (ServeEngine engine = engine(spec(1, false), true, this::plain)) {
      long start = System.nanoTime();
      ServeResult result =
          engine.run(plan(BLOCKS), ComputeModel.measured(1, 0), requests(1), _ -> {});
      double real = (System.nanoTime() - start) / 1e9;
      assertThat(result.seconds()).isGreaterThanOrEqualTo(0.063).isLessThan(real);
      assertThat(engine.uncountedSeconds()).isPositive().isLessThan(real - 0.063);
    }
  }
}

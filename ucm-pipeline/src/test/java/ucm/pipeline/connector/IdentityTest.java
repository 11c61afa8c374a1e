package ucm.pipeline.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.api.BlockIds;
import ucm.pipeline.connector.engine.EngineSpec;
import ucm.pipeline.connector.engine.KvIdentity;
import ucm.pipeline.connector.engine.PromptRequest;
import ucm.pipeline.connector.engine.RequestPlan;
import ucm.pipeline.connector.engine.StepPlan;
import ucm.pipeline.hash.BlockHasher;
import ucm.pipeline.hash.PromptVariant;
import ucm.testkit.fault.MemoryStore;

/** What names blocks, one thing changed at a time: then nothing that was stored before is found. */
class IdentityTest {

  private static final int BLOCKS = 5;
  private static final int TOKENS = BLOCKS * TestEngines.BLOCK_TOKENS + 1;
  private static final int ALL = BLOCKS * TestEngines.BLOCK_TOKENS;

  private static final KvIdentity IDENTITY = new KvIdentity("config", "weights", "layout");
  private static final EngineSpec SPEC = spec("/models/a", "torch.bfloat16", 1, IDENTITY);
  private static final PromptVariant VARIANT =
      new PromptVariant("adapter", List.of(new PromptVariant.Input("image", 0, 2)), "salt");

  private final MemoryStore.Volume volume = new MemoryStore.Volume();

  private static EngineSpec spec(String model, String dtype, int tpSize, KvIdentity identity) {
    EngineSpec gqa = TestEngines.gqa(tpSize);
    return new EngineSpec(
        "test", model, dtype, tpSize, false, gqa.blockTokens(), gqa.kv(), identity);
  }

  private static PromptRequest request(PromptVariant variant) {
    int[] tokens = IntStream.range(0, TOKENS).toArray();
    return new PromptRequest("r", tokens, TOKENS, 1, variant);
  }

  private void store(ConnectorSetup setup, PromptVariant variant) throws InterruptedException {
    EngineSpec spec = setup.spec();
    BlockIds ids =
        setup.hasher().forVariant(variant).hash(request(variant).tokens(), spec.blockTokens());
    RankMemory memory = new RankMemory(spec.kv(), ids.size());
    int[] numbers = IntStream.range(0, ids.size()).toArray();
    for (int rank = 0; rank < spec.tpSize(); rank++) {
      try (MemoryStore store = TestEngines.open(new MemoryStore(volume), spec);
          WorkerConnector worker = setup.worker(rank, memory.caches(), store)) {
        int[] none = {};
        RequestPlan plan = new RequestPlan("r", BlockIds.empty(), none, ids, numbers, none);
        TestEngines.step(worker, new StepPlan(List.of(plan)), TestEngines.LayerComputation.NONE);
      }
    }
  }

  private int found(ConnectorSetup setup, PromptVariant variant) {
    MemoryStore store = TestEngines.open(new MemoryStore(volume), setup.spec());
    try (store;
        SchedulerConnector scheduler = setup.scheduler(store)) {
      return scheduler.matchedTokens(request(variant), 0);
    }
  }

  private static ConnectorSetup setup(EngineSpec spec, String mode) {
    return TestEngines.setup(spec, "use_layerwise", false, "model_fingerprint", mode);
  }

  /** What is changed, how, and what is found then by path, config and weights. */
  static Stream<Arguments> changes() {
    String path = SPEC.model();
    String dtype = SPEC.dtype();
    return Stream.of(
        arguments("nothing", SPEC, VARIANT, ALL, ALL, ALL),
        arguments("path", spec("/models/b", dtype, 1, IDENTITY), VARIANT, 0, 0, ALL),
        arguments(
            "weights",
            spec(path, dtype, 1, new KvIdentity("config", "b", "layout")),
            VARIANT,
            ALL,
            ALL,
            0),
        arguments(
            "configuration",
            spec(path, dtype, 1, new KvIdentity("b", "weights", "layout")),
            VARIANT,
            ALL,
            0,
            0),
        arguments(
            "layout",
            spec(path, dtype, 1, new KvIdentity("config", "weights", "b")),
            VARIANT,
            0,
            0,
            0),
        arguments(
            "no layout",
            spec(path, dtype, 1, new KvIdentity("config", "weights", "")),
            VARIANT,
            0,
            0,
            0),
        arguments("dtype", spec(path, "torch.float16", 1, IDENTITY), VARIANT, 0, 0, 0),
        arguments("ranks", spec(path, dtype, 2, IDENTITY), VARIANT, 0, 0, 0),
        arguments("adapter", SPEC, new PromptVariant("b", VARIANT.inputs(), "salt"), 0, 0, 0),
        arguments("no adapter", SPEC, new PromptVariant("", VARIANT.inputs(), "salt"), 0, 0, 0),
        arguments("salt", SPEC, new PromptVariant("adapter", VARIANT.inputs(), "b"), 0, 0, 0),
        arguments(
            "image",
            SPEC,
            new PromptVariant("adapter", List.of(new PromptVariant.Input("b", 0, 2)), "salt"),
            0,
            0,
            0),
        arguments("no image", SPEC, new PromptVariant("adapter", List.of(), "salt"), 0, 0, 0),
        arguments("generation", SPEC, VARIANT.inGeneration("b"), 0, 0, 0));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("changes")
  void oneThingIsChanged(
      String what, EngineSpec spec, PromptVariant variant, int byPath, int byConfig, int byWeights)
      throws InterruptedException {
    List<String> modes = List.of("path", "config", "weights");
    int[] expected = {byPath, byConfig, byWeights};
    for (int i = 0; i < expected.length; i++) {
      store(setup(SPEC, modes.get(i)), VARIANT);
      ConnectorSetup setup = setup(spec, modes.get(i));
      int found;
      if (variant.generation().isEmpty()) {
        found = found(setup, variant);
      } else {
        MemoryStore store = TestEngines.open(new MemoryStore(volume), spec);
        try (store;
            SchedulerConnector scheduler = setup.scheduler(store)) {
          scheduler.useGeneration(variant.generation());
          found = scheduler.matchedTokens(request(VARIANT), 0);
        }
      }
      assertThat(found).as(what + " by " + modes.get(i)).isEqualTo(expected[i]);
      assertThat(found(setup(SPEC, modes.get(i)), VARIANT)).as("control").isEqualTo(ALL);
    }
  }

  @Test
  void aBlockSizeIsPartOfTheName() throws InterruptedException {
    EngineSpec other =
        new EngineSpec("test", SPEC.model(), SPEC.dtype(), 1, false, 2, SPEC.kv(), IDENTITY);
    store(setup(SPEC, "weights"), VARIANT);
    assertThat(found(setup(other, "weights"), VARIANT)).isZero();
  }

  @Test
  void byPathPlainBlocksHaveTheNamesOfTheOriginal() {
    EngineSpec plain =
        spec("Qwen/QwQ-32B", "torch.bfloat16", 1, new KvIdentity("config", "weights", ""));
    int[] tokens = request(VARIANT).tokens();
    BlockIds original = BlockHasher.of("Qwen/QwQ-32B", 1, "torch.bfloat16").hash(tokens, 4);
    assertThat(setup(plain, "path").hasher().hash(tokens, 4)).isEqualTo(original);
    assertThat(setup(plain, "config").hasher().hash(tokens, 4)).isNotEqualTo(original);
    // An engine that says nothing of its model has no other names to choose from.
    EngineSpec silent = spec("Qwen/QwQ-32B", "torch.bfloat16", 1, KvIdentity.NONE);
    assertThat(setup(silent, "weights").hasher().hash(tokens, 4)).isEqualTo(original);
  }

  @Test
  void afterAResetNothingOfBeforeIsFoundByThisEngineAndNewOnes() throws InterruptedException {
    ConnectorSetup setup = setup(SPEC, "weights");
    Generations shared = new Generations();
    store(setup, VARIANT);
    MemoryStore store = TestEngines.open(new MemoryStore(volume), SPEC);
    try (store;
        SchedulerConnector running = setup.withGenerations(shared).scheduler(store);
        SchedulerConnector other = setup.withGenerations(shared).scheduler(store)) {
      assertThat(running.matchedTokens(request(VARIANT), 0)).isEqualTo(ALL);
      running.reset();
      assertThat(running.matchedTokens(request(VARIANT), 0)).isZero();
      // One that runs already has the weights it had.
      assertThat(other.matchedTokens(request(VARIANT), 0)).isEqualTo(ALL);
      assertThat(found(setup.withGenerations(shared), VARIANT)).isZero();
    }
  }
}

package ucm.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreMetrics;
import ucm.api.Transfer;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;
import ucm.pipeline.catalog.PipelineSpec;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.catalog.UnknownStageException;
import ucm.pipeline.config.ConfigException;
import ucm.pipeline.config.UcmConfig;
import ucm.testkit.TestContext;

class PipelineTest {

  private static final Transfer NOTHING = Transfer.packed(BlockLayout.uniform(8, 8, 8)).build();

  private final List<String> journal = new ArrayList<>();
  private final Map<String, RecordingStore> stages = new HashMap<>();

  private StoreCatalog catalog() {
    Map<String, Supplier<Store>> factories = new HashMap<>();
    stages.forEach((name, store) -> factories.put(name, () -> store));
    return StoreCatalog.of(factories);
  }

  private RecordingStore stage(String name) {
    return stages.computeIfAbsent(name, n -> new RecordingStore(n, List.of(), journal));
  }

  private Pipeline open(String chain) {
    PipelineSpec.parse(chain).stages().forEach(this::stage);
    return Pipeline.open(UcmConfig.of(chain, Map.of()), catalog());
  }

  @Test
  void opensFromTheTailAndClosesFromTheHead() {
    try (Pipeline pipeline = open("A|B|C")) {
      assertThat(pipeline).hasToString("Pipeline A|B|C");
      assertThat(pipeline.name()).isEqualTo("Pipeline");
    }
    assertThat(journal)
        .containsExactly(
            "A.configure",
            "B.configure",
            "C.configure",
            "C.backend=none",
            "C.open",
            "B.backend=C",
            "B.open",
            "A.backend=B",
            "A.open",
            "A.close",
            "B.close",
            "C.close");
  }

  @Test
  void handsEachStageWhatTheStagesBelowItSuggest() {
    ConfigKey<Long> key = ConfigKey.longInteger("buffer_size");
    stage("B").suggests(Map.of("buffer_size", 2));
    stage("C").suggests(Map.of("buffer_size", 3));
    open("A|B|C").close();
    assertThat(stage("A").config().suggestion(key)).contains(2L);
    assertThat(stage("B").config().suggestion(key)).contains(3L);
    assertThat(stage("C").config().suggestion(key)).isEmpty();
    assertThat(stage("A").config().find(key)).isEmpty();
    stages.clear();
    stage("B").suggests(Map.of("buffer_size", 2));
    Pipeline inner = Pipeline.of(PipelineSpec.parse("A|B"), catalogOf("A", "B"));
    inner.configure(StoreConfig.of(Map.of()));
    assertThat(stage("A").config().suggestion(key)).contains(2L);
    assertThat(inner.suggestions()).containsEntry("buffer_size", 2);
    inner.close();
  }

  private StoreCatalog catalogOf(String... names) {
    List.of(names).forEach(this::stage);
    return catalog();
  }

  @Test
  void closesOpenedStagesWhenALaterOneFails() {
    stage("A").trap(RecordingStore.failsAt("open"));
    stage("C").trap(RecordingStore.failsAt("close"));
    StoreException failure = catchThrowableOfType(StoreException.class, () -> open("A|B|C"));
    assertThat(failure).hasMessage("stage A (1 of 3 in A|B|C) failed to open: no open today");
    assertThat(failure.getCause()).hasMessage("no open today");
    assertThat(failure.getCause().getSuppressed())
        .singleElement()
        .satisfies(e -> assertThat(e).hasMessage("no close today"));
    assertThat(journal)
        .endsWith("C.open", "B.backend=C", "B.open", "A.backend=B", "A.open", "B.close", "C.close");
  }

  @Test
  void closesNothingWhenTheTailFails() {
    stage("B").trap(RecordingStore.failsAt("open"));
    assertThatThrownBy(() -> open("A|B"))
        .isInstanceOf(StoreException.class)
        .hasMessage("stage B (2 of 2 in A|B) failed to open: no open today");
    assertThat(journal).doesNotContain("A.open", "A.close", "B.close");
  }

  @Test
  void aLinkageErrorOfAStageNamesTheStageToo() {
    stage("B")
        .trap(
            step -> {
              if (step.equals("open")) {
                throw new NoClassDefFoundError("acme/Missing");
              }
            });
    assertThatThrownBy(() -> open("A|B"))
        .isInstanceOf(StoreException.class)
        .hasMessage("stage B (2 of 2 in A|B) failed to open: acme/Missing");
  }

  @Test
  void resolvesEveryNameBeforeAnyStageIsBuilt() {
    List<String> built = new ArrayList<>();
    StoreCatalog catalog =
        StoreCatalog.of(
            Map.of(
                "A",
                () -> {
                  built.add("A");
                  return new RecordingStore("A", List.of(), journal);
                }));
    assertThatThrownBy(() -> Pipeline.of(PipelineSpec.parse("A|Nowhere"), catalog))
        .isInstanceOf(UnknownStageException.class);
    assertThat(built).isEmpty();
  }

  @Test
  void everyStageReportsBeforeAnyOpens() {
    UcmConfig config =
        UcmConfig.of("Cache|Posix", Map.of("cache_stream_number", 64, "posix_io_engine", "uring"))
            .with(RecordingStore.engineValues(), "engine");
    ConfigException failure =
        catchThrowableOfType(
            ConfigException.class, () -> Pipeline.open(config, RecordingStore.catalog(journal)));
    assertThat(failure)
        .hasMessage(
            """
            engine: error: cache_stream_number: found 64; allowed is an integer, 1 to 32 (streams) [Cache]
            engine: error: posix_io_engine: found "uring"; allowed is one of psync, aio [Posix]
            engine: error: storage_backends: is required and not set; allowed is a path, several joined by ':', or a list of paths [Posix]
            3 errors, 0 warnings\
            """);
    assertThat(journal).containsExactly("Cache.configure", "Posix.configure");
  }

  @Test
  void engineValuesMayLackInACheckButNotWhenOpening() {
    UcmConfig config = UcmConfig.of("Cache|Posix", Map.of("storage_backends", "/mnt/a"));
    assertThat(config.check(RecordingStore.catalog(journal)).text())
        .isEqualTo("0 errors, 0 warnings");
    assertThatThrownBy(() -> Pipeline.open(config, RecordingStore.catalog(journal)))
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("block_size: is required and not set")
        .hasMessageContaining("[Cache, Posix]");
  }

  @Test
  void aMissingPipelineIsReportedWithEverythingElse() {
    UcmConfig config =
        UcmConfig.parse(
            "f", "ucm_connector_name: UcmPipelineStore\nucm_connector_config: {}\nhit_ratio: 2\n");
    assertThatThrownBy(() -> Pipeline.open(config, RecordingStore.catalog(journal)))
        .isInstanceOf(ConfigException.class)
        .hasMessage(
            """
            f:2:1: error: store_pipeline: is required and not set; for example Cache|Posix
            f:3:12: error: hit_ratio: found 2; allowed is a number, more than 0, at most 1
            2 errors, 0 warnings\
            """);
  }

  @Test
  void eachStageCountsInItsOwnPlace() {
    Map<String, StoreMetrics> given = new HashMap<>();
    Function<String, StoreMetrics> metrics =
        name -> {
          StoreMetrics own = new OwnMetrics();
          given.put(name, own);
          return own;
        };
    stage("A");
    stage("B");
    try (Pipeline pipeline = Pipeline.open(UcmConfig.of("A|B", Map.of()), catalog(), metrics)) {
      assertThat(pipeline.stages()).containsExactly(stage("A"), stage("B"));
      assertThat(stage("A").context().metrics()).isSameAs(given.get("A"));
      assertThat(stage("B").context().metrics()).isSameAs(given.get("B"));
    }
  }

  private static final class OwnMetrics implements StoreMetrics {
    @Override
    public Counter counter(String name, String help) {
      return NONE.counter(name, help);
    }

    @Override
    public Histogram histogram(String name, String help) {
      return NONE.histogram(name, help);
    }

    @Override
    public void gauge(String name, String help, DoubleSupplier value) {}
  }

  @Test
  void isItselfAStageThatAnotherCanStandBehind() {
    stage("A");
    stage("B");
    RecordingStore outerNext = new RecordingStore("Outer", List.of(), journal);
    StoreMetrics metrics = new OwnMetrics();
    StoreContext outer = new TestContext(outerNext, metrics);
    try (Pipeline pipeline = Pipeline.of(PipelineSpec.parse("A|B"), catalog())) {
      pipeline.configure(StoreConfig.of(Map.of()));
      pipeline.open(outer);
      assertThat(journal).contains("B.backend=Outer", "A.backend=B");
      assertThat(stage("A").context().metrics()).isSameAs(metrics);
    }
  }

  @ParameterizedTest
  @MethodSource("operations")
  void namesItselfAlsoWhenACloseComesWhileAStageIsAsked(Operation operation) {
    Pipeline pipeline = open("A|B");
    stage("A")
        .trap(
            step -> {
              if (!step.equals("close")) {
                pipeline.close();
                throw new StoreClosedException("A");
              }
            });
    assertThatThrownBy(() -> operation.on(pipeline))
        .isInstanceOf(StoreClosedException.class)
        .hasMessage("Store Pipeline A|B is closed");
  }

  @Test
  void aStageThatWasClosedAloneIsNamed() {
    try (Pipeline pipeline = open("A|B")) {
      stage("A")
          .trap(
              step -> {
                if (step.equals("lookup")) {
                  throw new StoreClosedException("A");
                }
              });
      assertThatThrownBy(() -> pipeline.lookup(BlockIds.empty()))
          .isInstanceOf(StoreClosedException.class)
          .hasMessage("Store A is closed");
    }
  }

  interface Operation {
    void on(Pipeline store) throws InterruptedException;
  }

  private static Stream<Named<Operation>> operations() {
    return Stream.of(
        Named.of("lookup", store -> store.lookup(BlockIds.empty())),
        Named.of("lookupKnown", store -> store.lookupKnown(BlockIds.empty())),
        Named.of("lookupPrefix", store -> store.lookupPrefix(BlockIds.empty())),
        Named.of("prefetch", store -> store.prefetch(BlockIds.empty())),
        Named.of("notePrompt", store -> store.notePrompt(BlockIds.empty())),
        Named.of("load", store -> store.load(NOTHING)),
        Named.of("dump", store -> store.dump(NOTHING)),
        Named.of("flush", store -> store.flush(Duration.ZERO)),
        Named.of("durable", store -> store.durable(BlockIds.empty())),
        Named.of("offerMemory", store -> store.offerMemory(8)));
  }

  @Test
  void closesTheOthersWhenOneFailsToClose() {
    stage("A").trap(RecordingStore.failsAt("close"));
    stage("C").trap(RecordingStore.failsAt("close"));
    Pipeline pipeline = open("A|B|C");
    StoreException failure = catchThrowableOfType(StoreException.class, pipeline::close);
    assertThat(failure).hasMessage("Pipeline A|B|C did not close cleanly: no close today");
    assertThat(failure.getCause().getSuppressed()).hasSize(1);
    assertThat(journal).endsWith("A.close", "B.close", "C.close");
  }

  @Test
  void warningsOfTheConfigurationDoNotKeepItFromOpening() {
    UcmConfig config =
        UcmConfig.of("Fake", Map.of("asu_mode", "client", "posix_io_engine", "nonsense"));
    try (Pipeline pipeline = Pipeline.open(config, RecordingStore.catalog(journal))) {
      assertThat(pipeline.spec()).hasToString("Fake");
    }
  }
}

package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import ucm.api.Store;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.StoreName;
import ucm.api.config.ConfigKey;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.MemoryStore;

/** Pipelines of engines that have ended keep their memory, as long as no other engine needs it. */
@Timeout(60)
final class RoomTest {

  private static final AtomicInteger OPEN = new AtomicInteger();
  private static final AtomicInteger OPENED = new AtomicInteger();

  /** There is room for one. */
  @StoreName("Large")
  static final class LargeStore extends ForwardingStore {

    private final Store memory = new MemoryStore();
    private boolean counted;

    @Override
    protected Store inner() {
      return memory;
    }

    @Override
    public String name() {
      return "Large";
    }

    @Override
    public List<ConfigKey<?>> configKeys() {
      List<ConfigKey<?>> keys = new ArrayList<>(memory.configKeys());
      keys.add(ConfigKey.integer("large_size"));
      return keys;
    }

    @Override
    public void open(StoreContext context) {
      if (OPEN.get() > 0) {
        throw new StoreException("Large needs all the memory, and none is available");
      }
      OPEN.incrementAndGet();
      OPENED.incrementAndGet();
      counted = true;
      super.open(context);
    }

    @Override
    public void close() {
      super.close();
      if (counted) {
        counted = false;
        OPEN.decrementAndGet();
      }
    }
  }

  /** Of the pipeline, so that it is another one. */
  private static final String CHANGED = "      large_size: 2\n";

  @TempDir private Path folder;

  @BeforeEach
  void forget() {
    OPEN.set(0);
    OPENED.set(0);
  }

  private TestDaemon daemon() throws Exception {
    StoreCatalog stores = StoreCatalog.of(Map.of("Large", LargeStore::new));
    return new TestDaemon(folder, stores, "Large", 1 << 20);
  }

  private static void register(TestDaemon daemon, String id, String yaml) throws Exception {
    try (TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      worker.openWorker(id, 1, false, yaml, 0, 512);
    }
    awaitNoEngine(daemon);
  }

  /** The end of a connection is known to the daemon a moment later. */
  private static void awaitNoEngine(TestDaemon daemon) throws Exception {
    while (!daemon.status().get("engines").isEmpty()) {
      Thread.onSpinWait();
    }
  }

  @Test
  void anEngineThatStartsAgainWithAnotherConfigurationGetsTheRoomOfTheOneBefore() throws Exception {
    try (TestDaemon daemon = daemon()) {
      register(daemon, "first", daemon.yaml);
      register(daemon, "changed", daemon.yaml + CHANGED);
      assertThat(OPENED).hasValue(2);
      assertThat(OPEN).hasValue(1);
    }
    assertThat(OPEN).hasValue(0);
  }

  @Test
  void theSameConfigurationFindsItsPipelineAsItWas() throws Exception {
    try (TestDaemon daemon = daemon()) {
      register(daemon, "first", daemon.yaml);
      register(daemon, "again", daemon.yaml);
      assertThat(OPENED).hasValue(1);
    }
  }

  @Test
  void thePipelineOfAnEngineThatRunsStays() throws Exception {
    try (TestDaemon daemon = daemon();
        TestClient first = TestClient.admitted(daemon.socket, TestClient.WORKER);
        TestClient other = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      first.openWorker("first", 1, false, daemon.yaml, 0, 512);
      assertThatThrownBy(() -> other.openWorker("other", 1, false, daemon.yaml + CHANGED, 0, 512))
          .hasMessageContaining("refused 7: ")
          .hasMessageContaining("cannot be served now: stage Large");
      assertThat(OPENED).hasValue(1);
      first.ping();
    }
  }

  @Test
  void whoFindsNoRoomAsksAgainAndIsServedWhenThereIsSome() throws Exception {
    try (TestDaemon daemon = daemon()) {
      try (TestClient first = TestClient.admitted(daemon.socket, TestClient.WORKER);
          TestClient scheduler = TestClient.admitted(daemon.socket, TestClient.SCHEDULER)) {
        first.openWorker("first", 1, false, daemon.yaml, 0, 512);
        scheduler.openScheduler("other", 1, false, daemon.yaml + CHANGED);
        for (int i = 0; i < 2; i++) {
          try (TestClient other = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
            assertThatThrownBy(
                    () -> other.openWorker("other", 1, false, daemon.yaml + CHANGED, 0, 512))
                .hasMessageContaining("refused 7: ");
          }
        }
      }
      awaitNoEngine(daemon);
      register(daemon, "other", daemon.yaml + CHANGED);
      assertThat(OPENED).hasValue(2);
    }
  }

  @Test
  void aStageThatIsUnknownIsRefusedForGood() throws Exception {
    try (TestDaemon daemon = daemon();
        TestClient worker = TestClient.admitted(daemon.socket, TestClient.WORKER)) {
      String other = daemon.yaml.replace("Large", "Larger");
      assertThatThrownBy(() -> worker.openWorker("e", 1, false, other, 0, 512))
          .hasMessageContaining("refused 5: ")
          .hasMessageContaining("Larger");
    }
  }
}

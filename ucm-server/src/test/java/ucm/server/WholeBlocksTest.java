package ucm.server;

import static org.assertj.core.api.Assertions.assertThat;
import static ucm.server.TestEngine.BLOCK;
import static ucm.server.TestEngine.BYTES;
import static ucm.server.TestEngine.TENSOR;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import ucm.api.Store;
import ucm.api.StoreName;
import ucm.api.Task;
import ucm.api.Transfer;
import ucm.pipeline.catalog.StoreCatalog;
import ucm.pipeline.connector.engine.KvLayout;
import ucm.server.TestClient.Found;
import ucm.server.protocol.IdentityMessage;
import ucm.testkit.ForwardingStore;
import ucm.testkit.fault.MemoryStore;

/** The daemon moves all layers of a request's blocks at once, whatever {@code use_layerwise} says. */
@Timeout(60)
final class WholeBlocksTest {

  private static final List<Transfer> DUMPS = new CopyOnWriteArrayList<>();
  private static final List<Transfer> LOADS = new CopyOnWriteArrayList<>();
  private static final int BLOCKS = 3;

  /** Remembers what it was asked to move. */
  @StoreName("Watched")
  static final class WatchedStore extends ForwardingStore {

    private final Store memory = new MemoryStore();

    @Override
    protected Store inner() {
      return memory;
    }

    @Override
    public String name() {
      return "Watched";
    }

    @Override
    public Task dump(Transfer transfer) {
      DUMPS.add(transfer);
      return super.dump(transfer);
    }

    @Override
    public Task load(Transfer transfer) {
      LOADS.add(transfer);
      return super.load(transfer);
    }
  }

  @TempDir private Path folder;

  @BeforeEach
  void forget() {
    DUMPS.clear();
    LOADS.clear();
  }

  static Stream<KvLayout> layouts() {
    return Stream.of(
        KvLayout.uniform(2, TENSOR, TENSOR),
        KvLayout.of(new long[][] {{TENSOR, TENSOR}, {2 * TENSOR}}));
  }

  @ParameterizedTest
  @MethodSource("layouts")
  void allLayersOfTheBlocksOfARequestAreOneTransfer(KvLayout layout) throws Exception {
    int[] prompt = IntStream.range(0, BLOCKS * BLOCK + 1).toArray();
    StoreCatalog stores = StoreCatalog.of(Map.of("Watched", WatchedStore::new));
    try (TestDaemon daemon = new TestDaemon(folder, stores, "Watched", 32 * BYTES);
        TestEngine engine =
            new TestEngine(daemon, "engine", 1, false, IdentityMessage.NONE, layout)) {
      engine.compute(1, prompt);
      Found found = engine.scheduler.lookup(2, 0, prompt);
      assertThat(found.tokens()).isEqualTo(BLOCKS * BLOCK);
      engine.check(prompt, 0, found);
    }
    assertThat(DUMPS).singleElement().satisfies(WholeBlocksTest::isWhole);
    assertThat(LOADS).singleElement().satisfies(WholeBlocksTest::isWhole);
  }

  private static void isWhole(Transfer transfer) {
    assertThat(transfer.byteSize()).isEqualTo(BLOCKS * BYTES);
    assertThat(transfer.shardCount()).isEqualTo(BLOCKS * transfer.layout().shardCount());
    for (int shard = 0; shard < transfer.shardCount(); shard++) {
      int inBlock = shard % transfer.layout().shardCount();
      assertThat(transfer.shardIndex(shard)).isEqualTo(inBlock);
      if (inBlock > 0) {
        // A store writes what adjoins in one system call.
        assertThat(transfer.offset(shard, 0) - transfer.offset(shard - 1, 0))
            .isEqualTo(transfer.layout().shardSize());
      }
    }
  }
}

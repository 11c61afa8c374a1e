package ucm.store.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import ucm.api.BlockIds;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.api.StoreClosedException;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.config.StoreConfig;
import ucm.testkit.BlockBytes;
import ucm.testkit.RecordingMetrics;
import ucm.testkit.StoreFixture;
import ucm.testkit.TransferMemory;
import ucm.testkit.fault.MemoryStore;

final class FakeStoreTest {

  private static final BlockLayout LAYOUT = BlockLayout.uniform(64, 128, 512);
  private static final BlockIds IDS = BlockBytes.ids(1, 10);

  private final StoreFixture stores = new StoreFixture(LAYOUT);

  @AfterEach
  void closes() {
    stores.close();
  }

  @Test
  void leavesTheMemoryOfALoadAsItWas() {
    FakeStore store = stores.open(new FakeStore(), Map.of());
    dump(store, IDS);
    TransferMemory memory = stores.memory(IDS).scribble();
    store.load(memory.transfer()).result().requireOk();
    memory.checkScribbled();
  }

  private void dump(Store store, BlockIds ids) {
    store.dump(stores.memory(ids).fill().transfer()).result().requireOk();
  }

  @Test
  void countsWhatItDoes() {
    RecordingMetrics metrics = stores.metrics;
    FakeStore store = stores.open(new FakeStore(), Map.of("buffer_number", 4));
    dump(store, IDS.slice(0, 6));
    store.lookup(IDS);
    store.lookupPrefix(IDS.slice(2, 10));
    store.load(stores.memory(IDS.slice(5, 7)).transfer());
    assertThat(metrics.count("fake_dump_shards")).isEqualTo(24);
    assertThat(metrics.count("fake_evicted_blocks")).isEqualTo(2);
    assertThat(metrics.count("fake_lookup_blocks")).isEqualTo(18);
    assertThat(metrics.count("fake_hit_blocks")).isEqualTo(8);
    assertThat(metrics.count("fake_load_shards")).isEqualTo(8);
    assertThat(metrics.count("fake_missing_shards")).isEqualTo(4);
    assertThat(metrics.gauge("fake_blocks")).isEqualTo(4);
  }

  @Test
  void saysWhenTheHeapIsTooSmall() {
    assumeTrue(Runtime.getRuntime().maxMemory() < 40L << 28, "this heap is large enough for all");
    FakeStore store = new FakeStore();
    store.configure(StoreConfig.of(settings(Map.of("buffer_number", 1 << 28))));
    assertThatThrownBy(() -> store.open(StoreContext.of(null)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("268435456 blocks")
        .hasMessageContaining("lower buffer_number or raise -Xmx");
    assertThatThrownBy(() -> store.lookup(IDS)).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void takesNoNextStage() {
    for (Store store : new Store[] {new FakeStore(), new EmptyStore()}) {
      store.configure(StoreConfig.of(settings(Map.of())));
      assertThatThrownBy(() -> store.open(StoreContext.of(new MemoryStore())))
          .isInstanceOf(StoreException.class)
          .hasMessage(store.name() + " is a last stage and takes no next stage; found Memory");
      assertThatThrownBy(() -> store.lookup(IDS)).isInstanceOf(StoreClosedException.class);
    }
  }

  private static Map<String, Object> settings(Map<String, Object> more) {
    Map<String, Object> all = StoreFixture.workerKeys(LAYOUT);
    all.putAll(more);
    return all;
  }
}

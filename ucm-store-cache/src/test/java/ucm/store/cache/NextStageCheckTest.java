package ucm.store.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import ucm.api.BlockLayout;
import ucm.api.StoreContext;
import ucm.api.StoreException;
import ucm.api.config.StoreConfig;
import ucm.store.cache.fixture.HeldNext;
import ucm.testkit.StoreFixture;

class NextStageCheckTest {

  @Test
  void refusesANextStageThatKeepsMetadataOnly() {
    HeldNext next = new HeldNext(false);
    CacheStore cache = new CacheStore();
    StoreConfig config =
        StoreConfig.of(
            new TreeMap<>(StoreFixture.workerKeys(BlockLayout.uniform(4096, 4096, 4096))));
    cache.configure(config);
    assertThat(config.hasErrors()).isFalse();
    assertThatThrownBy(() -> cache.open(StoreContext.of(next)))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("Held")
        .hasMessageContaining("metadata only");
  }
}

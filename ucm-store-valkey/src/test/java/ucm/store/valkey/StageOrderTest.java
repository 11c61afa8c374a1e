package ucm.store.valkey;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import ucm.api.Store;

/** Needs no server. */
final class StageOrderTest {

  @Test
  void refusesAStageBehindItBeforeItIsOpened() {
    try (Store store = new ValkeyStore();
        Store next = new ValkeyStore()) {
      assertThat(store.refuseNext(null)).isEmpty();
      assertThat(store.refuseNext(next))
          .hasValue("Valkey is a last stage and takes no next stage; found Valkey");
    }
  }
}

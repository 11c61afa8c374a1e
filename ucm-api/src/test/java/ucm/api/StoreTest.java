package ucm.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import ucm.api.config.ConfigKey;
import ucm.api.config.StoreConfig;

final class StoreTest {

  @Test
  void isNamedByItsAnnotation() {
    assertThat(new Named().name()).isEqualTo("Named-1");
    assertThatThrownBy(() -> new Nameless().name())
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("Nameless has no @StoreName")
        .hasMessageContaining("add the annotation");
  }

  @Test
  void derivesPrefixPrefetchAndDurableFromTheLookUp() {
    BlockIds ids = BlockIds.wrap(new long[] {0, 1, 0, 2, 0, 3});
    List<Integer> asked = new ArrayList<>();
    Store store =
        new Nameless() {
          @Override
          public BitSet lookup(BlockIds blocks) {
            asked.add(blocks.size());
            return BitSet.valueOf(new long[] {blocks.isEmpty() ? 0b000 : 0b101});
          }
        };
    assertThat(store.lookupPrefix(ids)).isZero();
    store.prefetch(ids);
    assertThat(store.durable(ids).isEmpty()).isTrue();
    assertThat(asked)
        .as("ids each asked for; none, to refuse when not open")
        .containsExactly(3, 0, 0);
  }

  @StoreName("Named-1")
  private static final class Named extends Nameless {}

  private static class Nameless implements Store {

    @Override
    public List<ConfigKey<?>> configKeys() {
      return List.of();
    }

    @Override
    public void configure(StoreConfig config) {}

    @Override
    public void open(StoreContext context) {}

    @Override
    public BitSet lookup(BlockIds ids) {
      return new BitSet();
    }

    @Override
    public Task load(Transfer transfer) {
      return new TransferTask(1, transfer);
    }

    @Override
    public Task dump(Transfer transfer) {
      return new TransferTask(1, transfer);
    }

    @Override
    public FlushResult flush(Duration timeout) {
      return FlushResult.clean();
    }

    @Override
    public void close() {}
  }
}

package ucm.store.file.tier;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Nested;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;
import ucm.testkit.fault.MemoryStore;
import ucm.testkit.fault.MemoryStore.Volume;

/** The contract of two tiers, however the upper one writes and whatever the lower one is. */
final class TierContractTest {

  abstract static class Tiers extends StoreContract {

    @Override
    protected Store newStore() {
      return new LocalTier();
    }

    @Override
    protected boolean isService() {
      return false;
    }

    @Override
    protected Map<String, Object> settings(BlockLayout layout, Path directory) {
      return Map.of("local_storage_backends", directory.resolve("upper").toString());
    }
  }

  @Nested
  final class AboveMemory extends Tiers {

    private final Volume volume = new Volume();

    @Override
    protected Store newNextStage() {
      return new MemoryStore(volume);
    }
  }

  @Nested
  final class WritingBack extends Tiers {

    private final Volume volume = new Volume();

    @Override
    protected Store newNextStage() {
      return new MemoryStore(volume);
    }

    @Override
    protected Map<String, Object> settings(BlockLayout layout, Path directory) {
      return Map.of(
          "local_storage_backends",
          directory.resolve("upper").toString(),
          "local_write_policy",
          "write_back",
          "local_admission",
          "second_use",
          "local_staging_mb",
          2);
    }
  }

  @Nested
  final class AboveFiles extends Tiers {

    @Override
    protected Store newNextStage() {
      return new LowerFileStore();
    }

    @Override
    protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
      return Map.of("storage_backends", directory.resolve("lower").toString());
    }
  }

  /** Nothing is below: it is the store of files and no more. */
  @Nested
  final class Alone extends Tiers {}
}

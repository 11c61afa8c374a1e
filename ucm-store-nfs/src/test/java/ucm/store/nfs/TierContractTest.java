package ucm.store.nfs;

import java.nio.file.Path;
import java.util.Map;
import ucm.api.BlockLayout;
import ucm.api.Store;
import ucm.testkit.StoreContract;

/** The contract of {@code Posix|Nfs}. */
final class TierContractTest extends StoreContract {

  @Override
  protected Store newStore() {
    return new UpperTier();
  }

  @Override
  protected boolean isService() {
    return false;
  }

  @Override
  protected Map<String, Object> settings(BlockLayout layout, Path directory) {
    return Map.of(
        "posix_storage_backends",
        directory.resolve("local").toString(),
        "storage_backends",
        directory.resolve("shared").toString());
  }

  @Override
  protected Store newNextStage() {
    return new NfsStore();
  }

  @Override
  protected Map<String, Object> nextStageSettings(BlockLayout layout, Path directory) {
    return Map.of("storage_backends", directory.resolve("shared").toString());
  }
}

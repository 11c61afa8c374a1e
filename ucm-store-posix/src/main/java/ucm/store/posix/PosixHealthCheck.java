package ucm.store.posix;

import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileHealthCheck;
import ucm.store.file.tier.TieredStore;

/** Checks whether the directories of {@code Posix} are what it needs. */
public final class PosixHealthCheck implements HealthCheck {

  /** Checks this machine. */
  public PosixHealthCheck() {}

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    return stages.contains(PosixStore.KIND.name())
        ? FileHealthCheck.run(PosixStore.KIND, TieredStore.ofFiles(PosixStore.KIND, config))
        : List.of();
  }
}

package ucm.store.posix;

import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileHealthCheck;

/** Looks whether the directories of {@code Posix} are what it needs. */
public final class PosixHealthCheck implements HealthCheck {

  /** Looks at this machine. */
  public PosixHealthCheck() {}

  @Override
  public List<Finding> look(StoreConfig config) {
    return HealthCheck.isInPipeline(config, PosixStore.KIND.name())
        ? FileHealthCheck.look(PosixStore.KIND, config)
        : List.of();
  }
}

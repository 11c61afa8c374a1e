package ucm.store.posix;

import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileCheckup;

/** Looks whether the directories of {@code Posix} are what it needs. */
public final class PosixCheckup implements HealthCheck {

  /** Looks at this machine. */
  public PosixCheckup() {}

  @Override
  public List<Finding> look(StoreConfig config) {
    return HealthCheck.isInPipeline(config, PosixStore.KIND.name())
        ? FileCheckup.look(PosixStore.KIND, config)
        : List.of();
  }
}

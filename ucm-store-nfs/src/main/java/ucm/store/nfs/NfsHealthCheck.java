package ucm.store.nfs;

import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileHealthCheck;

/** Looks whether the directories of {@code Nfs} are what it needs. */
public final class NfsHealthCheck implements HealthCheck {

  /** Looks at this machine. */
  public NfsHealthCheck() {}

  @Override
  public List<Finding> look(StoreConfig config) {
    return HealthCheck.isInPipeline(config, NfsStore.NAME)
        ? FileHealthCheck.look(NfsStore.KIND, NfsConfig.ofFiles(config))
        : List.of();
  }
}

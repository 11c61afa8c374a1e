package ucm.store.nfs;

import java.util.List;
import ucm.api.admin.HealthCheck;
import ucm.api.config.StoreConfig;
import ucm.store.file.FileHealthCheck;

/** Checks whether the directories of {@code Nfs} are what it needs. */
public final class NfsHealthCheck implements HealthCheck {

  /** Checks this machine. */
  public NfsHealthCheck() {}

  @Override
  public List<Finding> run(StoreConfig config, List<String> stages) {
    return stages.contains(NfsStore.NAME)
        ? FileHealthCheck.run(NfsStore.KIND, NfsConfig.ofFiles(config))
        : List.of();
  }
}

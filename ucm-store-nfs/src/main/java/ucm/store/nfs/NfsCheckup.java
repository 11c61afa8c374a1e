package ucm.store.nfs;

import java.util.List;
import ucm.api.Checkup;
import ucm.api.StoreConfig;
import ucm.store.posix.FileCheckup;

/** Looks whether the directories of {@code Nfs} are what it needs. */
public final class NfsCheckup implements Checkup {

  /** Looks at this machine. */
  public NfsCheckup() {}

  @Override
  public List<Finding> look(StoreConfig config) {
    return Checkup.isInPipeline(config, NfsStore.NAME)
        ? FileCheckup.look(NfsStore.KIND, NfsConfig.ofFiles(config))
        : List.of();
  }
}

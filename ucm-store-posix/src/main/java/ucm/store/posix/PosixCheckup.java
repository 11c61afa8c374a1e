package ucm.store.posix;

import java.util.List;
import ucm.api.Checkup;
import ucm.api.StoreConfig;

/** Looks whether the directories of {@code Posix} are what it needs. */
public final class PosixCheckup implements Checkup {

  /** Looks at this machine. */
  public PosixCheckup() {}

  @Override
  public List<Finding> look(StoreConfig config) {
    return Checkup.isInPipeline(config, StoreKind.POSIX.name())
        ? FileCheckup.look(StoreKind.POSIX, config)
        : List.of();
  }
}

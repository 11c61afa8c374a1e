package ucm.store.file;

import java.util.Objects;
import ucm.api.StoreName;
import ucm.platform.libc.FileOperations;
import ucm.store.file.config.StoreKind;
import ucm.store.file.eviction.Collector;
import ucm.store.file.volume.Volumes;

/** The store of files of this module's tests. */
@StoreName("Local")
public final class LocalFileStore extends FileStore {

  public static final StoreKind KIND = new StoreKind("Local", true);

  /** A store on the system's own calls. */
  public LocalFileStore() {
    super(KIND);
  }

  /** A store on other system calls. */
  public LocalFileStore(FileOperations files) {
    super(KIND, files);
  }

  /** Waits until the files of dead writers are removed. */
  public void awaitSweep() throws InterruptedException {
    engine().volumes.awaitJob("sweep");
  }

  /** Waits until the files that were there at the start are in the index. */
  public void awaitScan() throws InterruptedException {
    Collector collector = engine().collector;
    if (collector != null) {
      collector.awaitFirstRound();
    } else {
      engine().volumes.awaitJob("scan");
    }
  }

  /** What makes room in a store with a capacity. */
  public Collector collector() {
    return Objects.requireNonNull(engine().collector);
  }

  /** The health of the directories. */
  public Volumes volumes() {
    return engine().volumes;
  }
}

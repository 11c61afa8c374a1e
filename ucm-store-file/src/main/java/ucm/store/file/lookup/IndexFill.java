package ucm.store.file.lookup;

import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import ucm.store.file.block.BlockFiles;
import ucm.store.file.config.FileStoreMetrics;
import ucm.store.file.health.DirectoryHealth;
import ucm.store.file.index.BlockIndex;

/** Fills the index with what is there in all directories, each by an {@link IndexScan} of its own. */
public final class IndexFill {

  private static final Logger LOG = LoggerFactory.getLogger(IndexFill.class);

  private final BlockIndex index;
  private final String store;
  private final List<String> directories;
  private final IndexScan[] scans;
  private final AtomicInteger left;

  public IndexFill(
      BlockFiles files, BlockIndex index, FileStoreMetrics metrics, DirectoryHealth health) {
    this.index = index;
    store = files.paths.store();
    directories = files.paths.directories();
    scans = new IndexScan[directories.size()];
    Arrays.setAll(scans, i -> new IndexScan(files, index, metrics, health, i));
    left = new AtomicInteger(scans.length);
  }

  /** Takes up one directory; whether that was all there is. Not called again when it was. */
  public boolean run(int directory) {
    boolean whole = scans[directory].run();
    if (whole && left.decrementAndGet() == 0) {
      index.scanned();
      LOG.info("{} knows {} blocks in {}", store, index.size(), directories);
    }
    return whole;
  }

  /** Ends the scans soon. */
  public void stop() {
    for (IndexScan scan : scans) {
      scan.stop();
    }
  }
}
